"""What a study found, in sentences made from its tables: no more than their numbers support."""

from collections.abc import Hashable, Mapping

import pandas as pd

from interp.analysis.contrasts import CONFIRMATORY, MODEL
from interp.analysis.ratio_table import LARGE_SHARE
from interp_experiments.remarks import EXPLORATORY, listed, organisms
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.attribution import ratios
from interp_experiments.rulebreakers.tables.comparisons import SIGNIFICANT
from interp_experiments.rulebreakers.tables.confidence import confidence
from interp_experiments.rulebreakers.tables.contrasts import contrasts
from interp_experiments.rulebreakers.tables.familiarity import familiarity
from interp_experiments.rulebreakers.tables.sample import competence
from interp_experiments.rulebreakers.tables.sensitivity import sensitivity


def findings(results: Results) -> list[str]:
    """The findings, most important first, a sentence or two each."""
    told_apart = sensitivity(results)
    return [
        *organisms(results.models),
        *incompetent(competence(results)),
        recognized(told_apart),
        sides(accuracy(results)),
        confirmed(contrasts(results)),
        EXPLORATORY,
        by_finding(
            told_apart,
            "Sensitivity within pairs",
            {
                "more often in the right order": "the positive answer is relatively likelier on "
                "the side where it is correct, for",
                "more often in the wrong order": "the positive answer is relatively likelier on "
                "the side where it is wrong, for",
            },
        ),
        by_finding(
            confidence(results),
            "Confidence where both sides of a pair are answered positively",
            {
                "surer when right": "larger where the answer is right, for",
                "surer when wrong": "larger where the answer is wrong, for",
            },
        ),
        by_finding(
            familiarity(results).query("cities == 'all'"),
            "Familiarity",
            {
                "recognized more familiar": "recognized cities are more familiar than failed ones "
                "to",
                "recognized less familiar": "recognized cities are less familiar than failed ones "
                "to",
            },
        ),
        *outliers(ratios(results)),
    ]


_CONTRASTS = {
    "rule": "Modus tollens against disjunctive syllogism",
    "entity_group": "Geographical against categorical entity pairs",
    "phrasing": "The best against the worst phrasing",
}
"""Factors of the contrasts within models, in words."""


def confirmed(table: pd.DataFrame) -> str:
    """What the contrasts named in advance show, by factor.

    Args:
        table: the contrasts of a study.
    """
    tested = table[(table["status"] == CONFIRMATORY) & table["p"].notna()]
    lines = [
        f"Confirmatory: {len(tested):,} contrasts of paired accuracy were named in the code before "
        "any run and could be tested. They are corrected together, so that the chance of any false "
        "finding among them is 5%."
    ]
    for factor, rows in tested.groupby("factor", sort=False):
        shown = rows[rows["p_holm"] < SIGNIFICANT]
        if factor == MODEL:
            pairs = listed(_signed(row, str(row["contrast"])) for row in shown.to_dict("records"))
            lines.append(
                f"Of {len(rows):,} pairs of models {len(shown):,} differ"
                f"{f': {pairs}' if pairs else ''}."
            )
        else:
            models = listed(_signed(row, str(row["model"])) for row in shown.to_dict("records"))
            lines.append(f"{_CONTRASTS[str(factor)]}: {models or 'no difference is shown'}.")
    return " ".join(lines)


def _signed(row: Mapping[Hashable, object], name: str) -> str:
    """A difference behind the name of what it is a difference of."""
    difference = f"{float(str(row['difference'])):+.2f}".replace("-", "−")
    return f"{name} ({difference})"


def incompetent(table: pd.DataFrame) -> list[str]:
    """Which models' numbers are no account of rulebreakers."""
    return [
        f"{row.model} cannot be asked this way ({row.why}); it is marked † in figures."
        for row in table[~table["competent"]].itertuples()
    ]


def recognized(table: pd.DataFrame) -> str:
    """The span of paired accuracies, and who is above chance."""
    ordered = table.sort_values("paired_accuracy")
    ends = [ordered.iloc[-1], ordered.iloc[0]][: len(ordered)]
    parts = [
        f"{row['paired_accuracy']:.1%} [{row['paired_low']:.1%}, {row['paired_high']:.1%}] of the "
        f"pairs by {row['model']}"
        for row in ends
    ]
    above = table[table["paired_low"] > table["chance_yes_rate"]]
    span = f"Both sides are answered correctly in {' and in '.join(dict.fromkeys(parts))}."
    return (
        f"{span} More than a model would get that gives as many positive answers whatever the "
        f"side: {listed(above['model']) or 'none'}."
    )


def sides(table: pd.DataFrame) -> str:
    """Which models fail rulebreakers more than their counterparts."""
    rows = table.set_index(["measure", "model"])[["low", "high"]]
    broken, kept = (rows.loc[side] for side in SIDES)
    lower = [model for model in broken.index if broken["high"][model] < kept["low"][model]]
    return (
        "Rulebreakers are rejected less often than non-rulebreakers are accepted, with intervals "
        f"apart, by {listed(lower) or 'no model'}."
    )


def by_finding(table: pd.DataFrame, subject: str, wording: dict[str, str]) -> str:
    """One sentence on which models show what, after correction."""
    endings = {
        **wording,
        "no difference shown": "no difference is shown for",
        "not tested": "too few entities to test, for",
    }
    by_ending = {
        ending: table.loc[table["finding"] == finding, "model"]
        for finding, ending in endings.items()
    }
    parts = [f"{ending} {listed(models)}" for ending, models in by_ending.items() if len(models)]
    return f"{subject}: {'; '.join(parts)}."


def outliers(table: pd.DataFrame) -> list[str]:
    """Which mean score ratios hang on one prompt."""
    large = table[(table["largest_share"] > LARGE_SHARE) & (table["ratio"] == "ratio")]
    names = [f"{row.model} by {row.method}" for row in large.itertuples()]
    return [
        f"One prompt holds more than {LARGE_SHARE:.0%} of all score ratios of {listed(names)}: "
        "read the median or the geometric mean there, not the mean."
    ] * bool(names)


def first_letters(shared: pd.DataFrame) -> str:
    """What familiarity measures, given how many countries share their first token."""
    most = shared[shared["sharing"] > shared["answers"] / 2]
    if most.empty:
        return (
            "Most countries have a first token of their own, which familiarity is then the "
            "probability of."
        )
    parts = [f"{row.sharing} of {row.answers} for {row.model}" for row in most.itertuples()]
    return (
        "Most countries share their first token with another "
        f"({listed(parts)}): familiarity is then little more than the probability of how the name "
        "begins, such as its first letter, and cannot tell these countries apart."
    )
