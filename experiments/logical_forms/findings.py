"""The first screen of the report page, computed from the study's tables."""

from collections.abc import Iterator

import pandas as pd

from interp.extend import counted, page
from interp.extend.cautions import void_models
from interp_experiments.findings import in_brief, opening
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.effects import Effects
from interp_experiments.logical_forms.results import Results, clustered_means


def first_screen(
    results: Results, *, valid: Effects | str, correlations: pd.DataFrame
) -> page.Glance:
    """Soft and hard accuracy of the competent models, and the confirmatory contrasts."""
    main = results.scores["questions"]
    questions = main["prompt_id"].nunique()
    competent, models = len(results.competent), counted(len(results.models), "model")
    left, void = len(results.models) - competent, void_models(results.cautions).keys()
    read = "to" if void & set(results.competent) else "and read"
    excluded = f"; excluded: {left}" if left else ""
    answered = (
        f"{competent} of {models} answered Yes or No {read} the questions{excluded}; "
        f"n = {questions:,} questions."
    )
    question = (
        "Which logical forms do models judge correctly, and does perplexity matter beyond form? "
        f"{models}, {counted(questions, 'question')}: {counted(main['form'].nunique(), 'form')} "
        f"under {counted(main['interpretation'].nunique(), 'interpretation')}."
    )
    return opening(
        *(question, headline_numbers(results), results.cautions, results.models),
        [*_confirmatory(valid), *_perplexity(correlations)],
        leading="soft accuracy" if competent else "",
        before=[answered],
    )


def headline_numbers(results: Results) -> pd.DataFrame:
    """Soft accuracy on all forms, on valid forms and on fallacies, and hard accuracy.

    Cells are blank for models that do not answer or do not read the questions, because their scores
    say nothing about forms.
    """
    rows = results.scores["questions"]
    valid = rows["gold"] == "Yes"
    parts = {"": rows, " on valid forms": rows[valid], " on fallacies": rows[~valid]}
    means = {
        f"soft accuracy{which}": clustered_means(part, "soft_accuracy", by=["model"])
        for which, part in parts.items()
    }
    hard = tables.intervals(rows).query("factor == 'all' and measure == 'hard accuracy'")
    void = void_models(results.cautions)
    reasons = {model: void[model] if why else "" for model, why in results.incompetence.items()}
    shown = []
    for name, table in {**means, "hard accuracy": hard}.items():
        note = table["model"].map(reasons)
        kept = {n: table[n].where(note == "") for n in ["mean", "low", "high"]}
        why = note.mask((note == "") & table["low"].isna(), "one interpretation")
        noted = table.assign(note=why, **kept)
        shown.append(page.headline(noted, name, value="mean", n="n", unit="questions"))
    return pd.concat(shown, ignore_index=True)


def _confirmatory(effects: Effects | str) -> Iterator[str]:
    """One sentence per factor on its confirmatory contrasts."""
    if isinstance(effects, str):
        return
    units = effects.means["models" if effects.model.random else "interpretations"].max()
    for factor, tests in effects.tests.groupby("factor", sort=False):
        name = tests["first"] + " − " + tests["second"]
        n = counted(len(effects.model.groups), "model")
        if not effects.model.random:
            n = f"{counted(int(units), 'interpretation')}, {n}"
        subject = f"Soft accuracy by {str(factor).replace('_', ' ')}, valid forms"
        yield in_brief(tests.assign(name=name, n=n, clusters=int(units)), subject, ordered=False)


def _perplexity(correlations: pd.DataFrame) -> Iterator[str]:
    rows = correlations[correlations["set"] == "questions"]
    rows = rows[rows["forms"] == "within all forms"].dropna(subset="rho")
    for row in rows[rows["model"] == tables.TOGETHER].to_dict("records"):
        rho = page.with_interval(row["rho"], row["low"], row["high"])
        yield (
            f"Within a form, perplexity and soft accuracy have a rank correlation of {rho}; "
            f"n = {row['n']:,} answers."
        )
