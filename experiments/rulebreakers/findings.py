"""The first screen and findings of a study, computed from its tables."""

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import LEFT_OUT, Caution, ordered, void_models
from interp.console import counted
from interp.measurements.answers.show import unequal
from interp.measurements.attribution.ratios import LARGE_SHARE
from interp.report.formatting import number_text
from interp.report.glance import (
    extremes,
    glance,
    headline,
    n_units,
    named_numbers,
    quotable,
    with_interval,
)
from interp.report.page import Glance, Section, TableItem
from interp.statistics.contrasts import CONFIRMATORY, MODEL
from interp_experiments.findings import (
    EXPLORATORY,
    in_brief,
    listed,
    matrix,
    model_matrix,
    named_section,
)
from interp_experiments.rulebreakers.answer_tables import (
    accuracy,
    competence,
    confidence,
    contrasts,
    sensitivity,
)
from interp_experiments.rulebreakers.attribution_tables import ALL, familiarity, ratios
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results

_CONTRASTS = {
    MODEL: "Between models",
    "rule": "Modus tollens minus disjunctive syllogism",
    "entity_group": "Geographical minus categorical entity pairs",
    "phrasing": "Best minus worst phrasing",
}
"""Factors of the contrasts named in advance, in words."""


def first_screen(results: Results) -> Glance:
    """Each model's accuracies and sensitivity, and the results of the confirmatory contrasts."""
    pairs, entities = len(results.prompts) // 2, results.prompts[CLUSTER].nunique()
    cautions = study_cautions(results)
    every, void = headline_numbers(results), void_models(cautions)
    numbers = quotable(every, cautions, list(_ACCURACIES.values()))
    named = dict(list(_among(confirmatory(results), void).groupby("factor", sort=False)))
    judged = accuracy(results)
    judged = judged[~judged["model"].isin(void)]
    first = "paired accuracy"
    subjects = {
        MODEL: "Paired accuracy between models",
        "rule": f"Paired accuracy, {_CONTRASTS['rule'].lower()}",
    }
    sentences = [
        *(extremes(numbers, name) for name in named_numbers(every, numbers) if name == first),
        *([sides(judged)] if len(judged) else []),
        *(
            in_brief(named[factor], subject, ordered=factor != MODEL)
            for factor, subject in subjects.items()
            if factor in named
        ),
        familiar(familiarity(results)),
    ]
    question = (
        "Does a model notice that the conclusion of a valid rule contradicts what it knows? "
        f"{counted(len(results.models), 'model')}, {counted(pairs, 'pair')} of prompts about "
        f"{counted(entities, 'entity pair')}. {unequal(results.prompts, CLUSTER)}"
    ).strip()
    drawn = list(_ACCURACIES.values())
    known = numbers.loc[numbers["number"].isin(drawn), "value"].notna().any()
    return glance(question, numbers, sentences, drawn=drawn if known else None, cautions=cautions)


def study_cautions(results: Results) -> tuple[Caution, ...]:
    """The cautions about the answers, and about models and pairs that the study sets aside."""
    void = void_models(results.cautions)
    table = competence(results)
    table = table[(table["why"] != "") & ~table["model"].isin(void)]
    cannot = [
        Caution(
            LEFT_OUT,
            str(row["model"]),
            f"its answers say nothing about rulebreakers: {row['why']} (accuracy on "
            f"non-rulebreakers {row['accepted']:.2f}).",
            voids=True,
            numbers={"accepted": row["accepted"], "no_answer": row["no_answer"]},
        )
        for row in table.to_dict("records")
    ]
    return ordered([*results.cautions, *cannot, *_filtered(results)])


def _filtered(results: Results) -> Iterator[Caution]:
    """A caution if the knowledge filter leaves less than half of the drawn entity pairs."""
    drawn, kept = (own[CLUSTER].nunique() for own in (results.drawn, results.prompts))
    if kept >= drawn / 2:
        return
    lost = drawn - kept
    text = (
        f"The study leaves out {lost:,} of {counted(drawn, 'entity pair')}, which some model fails "
        f"to complete, and so keeps {len(results.prompts) // 2:,} of "
        f"{counted(len(results.drawn) // 2, 'pair')}."
    )
    yield Caution(LEFT_OUT, "", text, numbers={"left_out": lost, "drawn": drawn})


def _among(table: pd.DataFrame, void: Collection[str]) -> pd.DataFrame:
    """The contrasts without those of the models in `void`, or between such a model and another."""
    ends = [(f"{name} - ", f" - {name}") for name in void]
    names = table["contrast"].astype(str)
    between = [
        any(own.startswith(first) or own.endswith(last) for first, last in ends) for own in names
    ]
    return table[~(table["model"].isin(void) | (np.array(between) & (table["factor"] == MODEL)))]


_ACCURACIES = {
    "paired": "paired accuracy",
    SIDES[0]: "rulebreakers rejected",
    SIDES[1]: "non-rulebreakers accepted",
}
"""Names of the headline accuracies, by measure."""


def headline_numbers(results: Results) -> pd.DataFrame:
    """Paired accuracy, accuracy on each side, and concordance."""
    by_measure = accuracy(results)
    parts = [
        headline(
            by_measure[by_measure["measure"] == measure],
            name,
            value="accuracy",
            n="pairs",
            unit="pairs",
        )
        for measure, name in _ACCURACIES.items()
    ]
    table = sensitivity(results)
    parts.append(
        headline(table, "sides in the right order", value="concordance", n="pairs", unit="pairs")
    )
    return pd.concat(parts, ignore_index=True)


def confirmatory(results: Results) -> pd.DataFrame:
    """The contrasts named in advance, with `name` and `n` as text."""
    table = contrasts(results)
    table = table[table["status"] == CONFIRMATORY]
    name = table["model"].where(
        table["factor"] != MODEL, table["contrast"].str.replace(" - ", " − ")
    )
    n = [counted(clusters, "entity pair") for clusters in table["clusters"]]
    return table.assign(name=name, n=n)


def finding_section(results: Results) -> Section:
    """Matrices of the contrasts named in advance, and other findings on each model."""
    table = confirmatory(results)
    of_models = table["factor"] == MODEL
    within = table[~of_models].assign(compared=table["factor"].map(_CONTRASTS))
    title = "Differences in paired accuracy"
    findings = finding_table(results)
    matrices = (
        model_matrix("between_models", f"{title} between models", table[of_models], results.models),
        matrix("within_models", f"{title} within each model", within, x="compared"),
    )
    note = (
        "above chance: the interval of paired accuracy lies above the paired accuracy of guesses "
        "with the same rate of positive answers on both sides (the rate is taken as known). "
        "rejects less: rulebreakers are rejected less often than their counterparts are accepted, "
        "and the intervals do not overlap. order within pairs: concordance. confidence: "
        "confidence in right answers minus confidence in wrong answers, in pairs with positive "
        "answers on both sides. familiarity: familiarity of recognized cities minus that of "
        "failed cities. Brackets: uncorrected 95% intervals. cannot be asked: the reason why the "
        "answers say nothing about rulebreakers; blank if they do."
    )
    item = TableItem("findings", "What each model shows", findings, note)
    text = "\n\n".join([EXPLORATORY, *outliers(ratios(results))])
    return named_section(table, item, matrices, text=text)


def finding_table(results: Results) -> pd.DataFrame:
    """One row per model: its findings in words and numbers; blank if they do not apply."""
    cities = familiarity(results)
    tables = {
        "order": sensitivity(results),
        "asked": competence(results),
        "confidence": confidence(results),
        "familiarity": cities[cities["cities"] == ALL],
    }
    of_model = {
        name: {str(row["model"]): row for row in table.to_dict("records")}
        for name, table in tables.items()
    }
    gap = _gap(accuracy(results))
    rows = []
    for model in results.models:
        order, competent, sure, known = (of_model[name][model] for name in tables)
        auroc = [float(order[f"auroc{end}"]) for end in ("", "_low", "_high")]
        rows.append(
            {
                "model": model,
                "above_chance": _shown(order["paired_low"] - order["chance_yes_rate"]),
                "rejects_less": _shown(gap[model]),
                "order_within_pairs": _found(order, "concordance"),
                "auroc_over_all_prompts": with_interval(*auroc, decimals=3),
                "confidence": _found(sure, "difference"),
                "familiarity": _found(known, "difference"),
                "cannot_be_asked": competent["why"],
            }
        )
    return pd.DataFrame(rows)


def _found(row: Mapping[Hashable, Any], value: str) -> str:
    """A finding, with its number and its corrected p-value."""
    number = with_interval(*(float(row[name]) for name in (value, "low", "high")), decimals=3)
    p = "" if pd.isna(row["p_holm"]) else f"p {number_text(row['p_holm'], p_value=True)}"
    return ", ".join(filter(None, [row["finding"], number, p]))


def _gap(table: pd.DataFrame) -> pd.Series:
    """By model, how far the interval for rulebreakers lies below that for their counterparts."""
    rows = table.set_index(["measure", "model"])
    broken, kept = (rows.loc[side] for side in SIDES)
    return kept["low"] - broken["high"]


def _shown(gap: float) -> str:
    """Whether a gap between intervals is above 0; "not tested" without intervals."""
    return "not tested" if pd.isna(gap) else "yes" if gap > 0 else "no"


def sides(table: pd.DataFrame) -> str:
    """A sentence on the models that fail on rulebreakers more often than on their counterparts."""
    gap, n = _gap(table).dropna(), f"n = {counted(int(table['pairs'].max()), 'pair')}"
    if gap.empty:
        return (
            "Whether rulebreakers are rejected less often than non-rulebreakers are accepted was "
            f"not tested: too few entity pairs; {n}."
        )
    return (
        f"{(gap > 0).sum()} of {counted(len(gap), 'model')} rejected rulebreakers less often than "
        f"they accepted non-rulebreakers, with intervals that do not overlap; {n}."
    )


def familiar(table: pd.DataFrame) -> str:
    """A sentence on familiarity and recognition, over all models."""
    rows = table[table["cities"] == ALL]
    counts = rows["finding"].value_counts()
    more, less, untested = (
        int(counts.get(name, 0))
        for name in ("recognized more familiar", "recognized less familiar", "not tested")
    )
    most = int(rows["clusters"].max())
    n = n_units(most, most, "cities")
    tested = len(rows) - untested
    if not tested:
        return (
            "Whether recognized cities are more familiar than failed ones was not tested for "
            f"{'any model' if untested > 1 else 'the model'}: too few of either; {n}."
        )
    return (
        f"Recognized cities proved more familiar than failed ones to {more} of "
        f"{counted(tested, 'model')} tested, less familiar to {less}; {untested} not tested; {n}."
    )


def outliers(table: pd.DataFrame) -> list[str]:
    """A sentence on mean score ratios that depend on a single prompt."""
    large = table[(table["largest_share"] > LARGE_SHARE) & (table["ratio"] == "ratio")]
    kept = table[table["ratio"] == "ratio"]
    return [
        f"In {len(large)} of {len(kept)} combinations of model and method, a single prompt "
        f"accounts for more than {LARGE_SHARE:.0%} of the sum of score ratios (table Score "
        "ratios); for these, use the median or the geometric mean instead of the mean."
    ] * bool(len(large))


def echoes(counted_by_model: pd.DataFrame) -> str:
    """A sentence on replies that repeat the sentence, from the table `echoing`."""
    if counted_by_model.empty:
        return "The folder has no familiarity after an echo; a new run of the study measures it."
    parts = [
        f"{row.echoes} of {row.cities} for {row.model}" for row in counted_by_model.itertuples()
    ]
    return (
        f"Replies that begin by repeating the sentence ({listed(parts)}) make it low even for "
        "known facts; familiarity after an echo, shown beside it, does not depend on this."
    )


def first_letters(shared: pd.DataFrame) -> str:
    """A sentence on what familiarity measures, given how many countries share their first token."""
    most = shared[shared["sharing"] > shared["answers"] / 2]
    if most.empty:
        return (
            "Most countries share their first token with no other country, so familiarity "
            "distinguishes them."
        )
    parts = [f"{row.sharing} of {row.answers} for {row.model}" for row in most.itertuples()]
    return (
        "Most countries share their first token with another country "
        f"({listed(parts)}), so familiarity is little more than the probability of the "
        "beginning of the name, such as its first letter, and cannot distinguish these countries."
    )
