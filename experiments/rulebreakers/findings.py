"""What a study found, in sentences made from its tables: no more than their numbers support."""

from collections.abc import Sequence

import pandas as pd

from interp.analysis.ratio_table import LARGE_SHARE
from interp.models.organisms import PREFIX
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.attribution import ratios
from interp_experiments.rulebreakers.tables.confidence import confidence
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


def organisms(models: Sequence[str]) -> list[str]:
    """What cannot be concluded from models that were made for this project."""
    made = [model for model in models if model.startswith(PREFIX)]
    if not made:
        return []
    which = "All models" if len(made) == len(models) else _listed(made)
    return [
        f"{which} here are organisms: small models trained for this project, with known causes "
        "planted in them. They show whether a method finds what was planted. They say nothing "
        "about published models, whatever architecture they share with them."
    ]


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
        f"side: {_listed(above['model']) or 'none'}."
    )


def sides(table: pd.DataFrame) -> str:
    """Which models fail rulebreakers more than their counterparts."""
    rows = table.set_index(["measure", "model"])[["low", "high"]]
    broken, kept = (rows.loc[side] for side in SIDES)
    lower = [model for model in broken.index if broken["high"][model] < kept["low"][model]]
    return (
        "Rulebreakers are rejected less often than non-rulebreakers are accepted, with intervals "
        f"apart, by {_listed(lower) or 'no model'}."
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
    parts = [f"{ending} {_listed(models)}" for ending, models in by_ending.items() if len(models)]
    return f"{subject}: {'; '.join(parts)}."


def outliers(table: pd.DataFrame) -> list[str]:
    """Which mean score ratios hang on one prompt."""
    large = table[(table["largest_share"] > LARGE_SHARE) & (table["ratio"] == "ratio")]
    names = [f"{row.model} by {row.method}" for row in large.itertuples()]
    return [
        f"One prompt holds more than {LARGE_SHARE:.0%} of all score ratios of {_listed(names)}: "
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
        f"({_listed(parts)}): familiarity is then little more than the probability of how the name "
        "begins, such as its first letter, and cannot tell these countries apart."
    )


def _listed(names: Sequence[str] | pd.Series) -> str:
    """Names as in a sentence: "a, b and c"."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last
