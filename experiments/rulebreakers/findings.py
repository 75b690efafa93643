"""The findings of a study, in sentences that claim no more than its tables show."""

from collections.abc import Mapping

import pandas as pd

from interp.analysis.ratios import LARGE_SHARE
from interp.statistics.contrasts import CONFIRMATORY, MODEL
from interp.statistics.decisions import DIFFERENT, SMALLEST, left_open
from interp_experiments.findings import EXPLORATORY, listed, organisms, signed
from interp_experiments.rulebreakers.answer_tables import (
    NOT_SHOWN,
    accuracy,
    competence,
    confidence,
    contrasts,
    sensitivity,
)
from interp_experiments.rulebreakers.attribution_tables import ALL, familiarity, ratios
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results

_CONTRASTS = {
    "rule": "Modus tollens against disjunctive syllogism",
    "entity_group": "Geographical against categorical entity pairs",
    "phrasing": "The best against the worst phrasing",
}
"""Factors of the contrasts within models, in words."""

_SENSITIVITY = {
    "more often in the right order": "the positive answer is relatively more likely on the side "
    "where it is correct, for",
    "more often in the wrong order": "the positive answer is relatively more likely on the side "
    "where it is wrong, for",
}
_CONFIDENCE = {
    "surer when right": "larger where the answer is right, for",
    "surer when wrong": "larger where the answer is wrong, for",
}
_FAMILIARITY = {
    "recognized more familiar": "recognized cities are more familiar than failed ones to",
    "recognized less familiar": "recognized cities are less familiar than failed ones to",
}


def findings(results: Results) -> list[str]:
    """The findings, most important first, in one or two sentences each."""
    by_model = sensitivity(results)
    both_positive = "Confidence where both sides of a pair are answered positively"
    cities = familiarity(results)
    return [
        *organisms(results.models),
        *incompetent(competence(results)),
        recognized(by_model),
        confirmed(contrasts(results)),
        EXPLORATORY,
        above_chance(by_model),
        sides(accuracy(results)),
        by_finding(by_model, "Sensitivity within pairs", _SENSITIVITY, value="concordance"),
        *across_pairs(by_model),
        by_finding(confidence(results), both_positive, _CONFIDENCE),
        by_finding(cities[cities["cities"] == ALL], "Familiarity", _FAMILIARITY),
        *outliers(ratios(results)),
    ]


def confirmed(table: pd.DataFrame) -> str:
    """Sentences on the contrasts named in advance, by factor: differences shown and excluded.

    Args:
        table: the contrasts of a study.
    """
    tested = table[(table["status"] == CONFIRMATORY) & table["p"].notna()]
    lines = [
        f"Confirmatory: {len(tested):,} contrasts of paired accuracy were named in the code before "
        "any run and could be tested. They are corrected together, so the chance of any false "
        "finding among them is at most 5%. The smallest difference of interest is "
        f"{SMALLEST:g}, one pair in ten. If no difference is shown, brackets hold the range that "
        "two one-sided tests, each at 5% and not corrected, do not exclude."
    ]
    for factor, rows in tested.groupby("factor", sort=False):
        name = "contrast" if factor == MODEL else "model"
        is_shown = rows["verdict"] == DIFFERENT
        shown = [
            f"{row[name]} ({signed(row['difference'])})"
            for row in rows[is_shown].to_dict("records")
        ]
        if factor == MODEL:
            said = f"Of {len(rows):,} pairs of models {len(shown):,} differ"
            said += f": {listed(shown)}" * bool(shown)
        else:
            said = f"{_CONTRASTS[str(factor)]}: a difference is shown for "
            said += listed(shown) or "no model"
        limits = rows.loc[~is_shown, [name, "excluded_below", "excluded_above"]]
        left = left_open(limits.itertuples(index=False, name=None))
        lines.append(f"{'; '.join(filter(None, (said, left)))}.")
    return " ".join(lines)


def incompetent(table: pd.DataFrame) -> list[str]:
    """A sentence for each model whose numbers say nothing about rulebreakers."""
    return [
        f"{row.model} cannot be asked this way ({row.why}); it is marked † in figures."
        for row in table[~table["competent"]].itertuples()
    ]


def recognized(table: pd.DataFrame) -> str:
    """The highest and the lowest paired accuracy."""
    ordered = table.sort_values("paired_accuracy")
    parts = [
        f"{row['paired_accuracy']:.1%} [{row['paired_low']:.1%}, {row['paired_high']:.1%}] of the "
        f"pairs by {row['model']}"
        for row in (ordered.iloc[-1], ordered.iloc[0])
    ]
    return f"Both sides are answered correctly in {' and in '.join(dict.fromkeys(parts))}."


def above_chance(table: pd.DataFrame) -> str:
    """Models with paired accuracy above chance for their rate of positive answers."""
    above = table[table["paired_low"] > table["chance_yes_rate"]]
    return (
        "The interval of paired accuracy lies above that of a model with as many positive answers "
        "on either side (that rate taken as known) for "
        f"{listed(above['model']) or 'no model'}."
    )


def sides(table: pd.DataFrame) -> str:
    """Models that fail rulebreakers more often than their counterparts."""
    rows = table.set_index(["measure", "model"])[["low", "high"]]
    broken, kept = (rows.loc[side] for side in SIDES)
    lower = [model for model in broken.index if broken["high"][model] < kept["low"][model]]
    return (
        "Rulebreakers are rejected less often than non-rulebreakers are accepted, with intervals "
        f"that do not overlap, by {listed(lower) or 'no model'}."
    )


def by_finding(
    table: pd.DataFrame, subject: str, wording: Mapping[str, str], *, value: str = "difference"
) -> str:
    """One sentence on the finding for each model, after correction.

    If nothing is shown, it gives the value with its interval.
    """
    shown = [value, "low", "high"]
    numbers = table[shown].map("{:.2f}".format).replace("-0.00", "0.00")
    numbers = numbers.replace("-", "−", regex=True)
    intervals = " (" + numbers[value] + " [" + numbers["low"] + ", " + numbers["high"] + "])"
    names = table["model"] + intervals.where(table["finding"] == NOT_SHOWN, "")
    endings = {
        **wording,
        NOT_SHOWN: f"neither is shown after correction ({value} [95% interval, not corrected]) for",
        "not tested": "too few entities to test, for",
    }
    by_ending = {ending: names[table["finding"] == finding] for finding, ending in endings.items()}
    parts = [f"{ending} {listed(models)}" for ending, models in by_ending.items() if len(models)]
    return f"{subject}: {'; '.join(parts)}."


def across_pairs(table: pd.DataFrame) -> list[str]:
    """Models whose AUROC interval excludes one half though no difference shows within pairs."""
    apart = (table["auroc_low"] > 0.5) | (table["auroc_high"] < 0.5)
    names = [
        f"{row.model} ({row.auroc:.2f} [{row.auroc_low:.2f}, {row.auroc_high:.2f}])"
        for row in table[apart & (table["finding"] == NOT_SHOWN)].itertuples()
    ]
    return [
        "Sensitivity across pairs: no difference within pairs is shown, but over all prompts the "
        "AUROC of the positive answer's relative probability differs from 0.5 (95% interval, not "
        f"corrected) for {listed(names)}."
    ] * bool(names)


def outliers(table: pd.DataFrame) -> list[str]:
    """A sentence on the mean score ratios that depend on one prompt."""
    large = table[(table["largest_share"] > LARGE_SHARE) & (table["ratio"] == "ratio")]
    names = [f"{row.model} by {row.method}" for row in large.itertuples()]
    return [
        f"One prompt makes up more than {LARGE_SHARE:.0%} of the sum of score ratios for "
        f"{listed(names)}: for these, read the median or the geometric mean, not the mean."
    ] * bool(names)


def first_letters(shared: pd.DataFrame) -> str:
    """A sentence on what familiarity measures, given how many countries share their first token."""
    most = shared[shared["sharing"] > shared["answers"] / 2]
    if most.empty:
        return (
            "Most countries share their first token with no other, so familiarity distinguishes "
            "them."
        )
    parts = [f"{row.sharing} of {row.answers} for {row.model}" for row in most.itertuples()]
    return (
        "Most countries share their first token with another "
        f"({listed(parts)}): familiarity is then little more than the probability of the "
        "beginning of the name, such as its first letter, and cannot distinguish these countries."
    )
