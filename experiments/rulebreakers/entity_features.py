"""Which entity pairs are answered well, and what they have in common (paper, Appendix G)."""

import numpy as np
import pandas as pd
from scipy import stats

from interp.errors import UserError
from interp.statistics.clusters import FEWEST
from interp.statistics.proportions import shrunken_shares
from interp.statistics.summaries import grouped

PERMUTATIONS = 9999
"""Reassignments of the feature that are drawn."""

_CONTRAST = (
    "difference",
    "p",
    "n_with",
    "n_without",
    "mean_with",
    "mean_without",
    "note",
)


def most_and_least(entities: pd.DataFrame, *, key: str, k: int) -> pd.DataFrame:
    """The k entity pairs that the models answer best and the k that they answer worst.

    They are ordered by an estimate that is shrunken towards the mean of all
    (`interp.statistics.proportions`); otherwise those with the fewest prompts are at both ends.
    Columns are end ("most" or "least"), rank (from 1), `key`, estimate with low and high, share
    (of pairs answered correctly, mean over models), trials: pairs of prompts times models,
    effective_trials, models. Ties go by name. No entity pair is at both ends: of fewer than 2 k,
    the better half is at one end and the rest at the other.

    Args:
        entities: one row per model and entity pair, as from `entity_level`.
        key: the column that names an entity pair.
        k: how many at each end.

    Raises:
        UserError: fewer than one asked for.
    """
    if k < 1:
        raise UserError(f"{k} entity pairs asked for; expected at least 1")
    cells = entities.dropna(subset=["paired_accuracy"])
    ranked = shrunken_shares(cells, group=key, by="model", share="paired_accuracy", n="pairs")
    ranked = ranked.rename(columns={"cells": "models"})
    half = (len(ranked) + 1) // 2
    best = ranked.sort_values(["estimate", key], ascending=[False, True]).head(min(k, half))
    rest = ranked[~ranked[key].isin(best[key])]
    worst = rest.sort_values(["estimate", key]).head(k)
    ends = [
        end.assign(end=name, rank=range(1, len(end) + 1))
        for name, end in (("most", best), ("least", worst))
    ]
    numbers = ["estimate", "low", "high", "share", "trials", "effective_trials", "models"]
    return pd.concat(ends, ignore_index=True)[["end", "rank", key, *numbers]]


def feature_contrast(entities: pd.DataFrame, *, value: str, feature: str) -> pd.DataFrame:
    """Entity pairs with a feature against those without, by a permutation test.

    One row for each model: model, feature, difference (with minus without), p, n_with,
    n_without, mean_with, mean_without, note. p is the two-sided share of reassignments of the
    feature whose difference of means is at least as large: twice the smaller tail, over 9,999 drawn
    with a fixed seed and the one observed. Nothing is assumed of the accuracies' distribution,
    which piles up at 0 and 1. With fewer than ten entity pairs on either side there is no power to
    find anything, and no test.

    Args:
        entities: one row per entity pair (and model), as from `entity_level`.
        value: the column that is compared; missing values are left out.
        feature: a boolean column, such as whether the city's name contains the country's.
    """
    rows = [
        {**cell, "feature": feature, **_contrast(rows[value], rows[feature].astype(bool))}
        for cell, rows in grouped(entities.dropna(subset=[value]), ["model"])
    ]
    return pd.DataFrame(rows, columns=["model", "feature", *_CONTRAST])


def _contrast(values: pd.Series, feature: pd.Series) -> dict[str, object]:
    a, b = (values[mask].to_numpy(dtype=float) for mask in (feature, ~feature))
    means = [float(group.mean()) if len(group) else float("nan") for group in (a, b)]
    row = {
        "n_with": len(a),
        "n_without": len(b),
        "mean_with": means[0],
        "mean_without": means[1],
        "difference": means[0] - means[1],
    }
    note = _why_undefined(values, len(a), len(b))
    if note:
        return {**row, "p": float("nan"), "note": note}
    test = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        vectorized=True,
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return {**row, "p": float(test.pvalue), "note": ""}


def _why_undefined(values: pd.Series, n_with: int, n_without: int) -> str:
    if min(n_with, n_without) < FEWEST:
        few, n = ("with", n_with) if n_with < FEWEST else ("without", n_without)
        return (
            f"not tested, for lack of power: {n} entity pairs {few} the feature, at least {FEWEST} "
            "needed"
        )
    return "undefined: all values equal" if values.nunique() == 1 else ""
