"""What was found, in sentences made from the numbers of the tables."""

from collections.abc import Iterator

import pandas as pd

from interp.report.formatting import number_text
from interp_experiments.logical_forms.effects import Effects
from interp_experiments.logical_forms.results import MIN_ANSWERED, Results
from interp_experiments.remarks import EXPLORATORY, organisms

LEVEL = 0.05
"""Corrected p-values below this are reported as a difference."""


def findings(
    results: Results,
    *,
    valid: Effects | str,
    affirmation: pd.DataFrame,
    correlations: pd.DataFrame,
) -> str:
    """Paragraphs on who was measured, accuracy, perplexity and the inclination to an answer."""
    exploratory = [*_perplexity(correlations), *_inclination(affirmation)]
    paragraphs = [
        *organisms(results.models),
        _who(results),
        *_confirmatory(valid),
        *([EXPLORATORY, *exploratory] if exploratory else []),
    ]
    return "\n\n".join(paragraphs)


def _who(results: Results) -> str:
    competent, count = results.competent, len(results.models)
    left_out = [model for model in results.models if model not in competent]
    text = (
        f"{len(competent)} of {count} models answer the questions and read them: "
        f"{', '.join(competent) or 'none'}."
    )
    if left_out:
        text += (
            f" The other {len(left_out)} ({', '.join(left_out)}) have a probability of Yes and No "
            f"together below {MIN_ANSWERED} or a perplexity above that of guessing: their soft "
            "accuracies say nothing of logical forms, they are grey in the figures, and nothing "
            "below is about them."
        )
    return text


def _confirmatory(found: Effects | str) -> Iterator[str]:
    if isinstance(found, str):
        return
    yield (
        f"Confirmatory: the {len(found.tests)} comparisons of modalities and of argument forms in "
        "soft accuracy on valid forms (Table 2) were fixed in the code and are corrected together, "
        "so that the chance of any false finding among them is 5%."
    )
    groups = len(found.model.groups)
    who = "one model, and of no other" if groups == 1 else f"{groups} models"
    for factor, means in found.means.groupby("factor", sort=False):
        ordered = means.sort_values("mean", ascending=False)
        values = ", ".join(
            f"{row['level']} {number_text(row['mean'])} ({number_text(row['raw_mean'])} raw)"
            for row in ordered.to_dict("records")
        )
        tests = found.tests[found.tests["factor"] == factor]
        tested, differing = tests["p_holm"].notna().sum(), tests[tests["p_holm"] < LEVEL]
        pairs = ", ".join(f"{a} and {b}" for a, b in differing[["first", "second"]].to_numpy())
        text = f"Soft accuracy on valid forms by {str(factor).replace('_', ' ')}: {values}."
        if tested:
            text += f" Of {tested} pairs {len(differing)} differ after Holm's correction"
            text += f" ({pairs})." if pairs else "."
        else:
            text += " No pair could be tested: the table's note says why."
        if means["note"].ne("").any():
            levels = ", ".join(means.loc[means["note"].ne(""), "level"])
            text += f" The adjusted means of {levels} are extrapolated: read the raw ones."
        yield f"{text} This is said of {who}."


def _perplexity(correlations: pd.DataFrame) -> Iterator[str]:
    rows = correlations[correlations["set"] == "questions"].drop_duplicates("forms")
    rows = rows[rows["rho"].notna()]
    if rows.empty or not rows["n"].iloc[0]:
        return
    values = "; ".join(
        f"{row['forms']} {number_text(row['rho'])} ({number_text(row['low'])} to "
        f"{number_text(row['high'])})"
        for row in rows.to_dict("records")
    )
    yield (
        f"Rank correlation of perplexity with soft accuracy over the models above: {values}. Only "
        "within a form is it free of what the forms themselves do."
    )


def _inclination(table: pd.DataFrame) -> Iterator[str]:
    for model, rows in table.groupby("model", sort=False):
        parts = [
            f"{row['modality']} {number_text(row['bias'])} ({number_text(row['bias_low'])} to "
            f"{number_text(row['bias_high'])})"
            for row in rows.to_dict("records")
            if row["modality"] != "all"
        ]
        yield f"{model}: log-odds of Yes beyond what is correct, by modality: {', '.join(parts)}."
