"""Tables of entity pairs: their accuracy and its correlates (Appendix G)."""

import numpy as np
import pandas as pd
from scipy import stats

from interp.analysis.accuracy import pairs_of
from interp.console import counted
from interp.measurements.attribution.ratios import column_name
from interp.statistics.classical import spearman_table
from interp.statistics.clusters import FEWEST
from interp.statistics.decisions import holm
from interp.statistics.proportions import shrunken_shares
from interp.statistics.summaries import grouped
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results

EQUAL = 1e-9
"""Estimates that differ by less differ only by rounding."""

EXTREMES = 10
"""Number of entity pairs at each end of Appendix G's list."""

ENTITY_RATIOS = ("gradient_ratio", "attention_ratio")
"""Columns in the table of entity pairs for which correlations are computed."""

PERMUTATIONS = 9999
"""Number of random reassignments of the feature."""


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair.

    Columns are entity_pair, model, {side}_accuracy for each side, paired_accuracy, pairs (how
    many), {method}_ratio for each method, familiarity, entity_group. {method}_ratio is the mean of
    the defined score ratios over the prompts of both sides; familiarity, a probability, exists only
    for cities.
    """
    keys = ["model", CLUSTER]
    keep = [CLUSTER, "entity_group"]
    pairs = pairs_of(results.answers, results.prompts, keep=keep, sides=SIDES)
    by_entity = pairs.groupby(keys, sort=False)
    shares = by_entity[[*SIDES, "paired"]].mean().add_suffix("_accuracy").astype(float)
    scores = results.ratios[["model", "prompt_id", "method", "ratio"]].merge(
        results.prompts[["prompt_id", CLUSTER]], on="prompt_id", validate="many_to_one"
    )
    by_method = scores.groupby([*keys, "method"], sort=False)["ratio"].mean().unstack()
    by_method = by_method.rename(columns=column_name).add_suffix("_ratio")
    table = shares.assign(pairs=by_entity.size()).join(by_method)
    table = table.join(results.cities().set_index(keys)["familiarity"])
    table = table.join(by_entity["entity_group"].first()).reset_index()
    return table[[CLUSTER, "model", *table.columns.drop([CLUSTER, "model"])]]


def entity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations across each model's entity pairs (for familiarity, across cities)."""
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *ENTITY_RATIOS)]
    pairs += [("familiarity", ratio) for ratio in ENTITY_RATIOS]
    table = spearman_table(entities(results), pairs=pairs, by=["model"])
    return holm(table, family="across entity pairs")


def extremes(entities: pd.DataFrame, *, k: int = EXTREMES) -> pd.DataFrame:
    """The k entity pairs with the highest estimated accuracy and the k with the lowest.

    Estimates are shrunk towards the overall mean (`interp.statistics.proportions`), since otherwise
    both ends would consist of the entity pairs with the fewest prompts. Columns are end ("most" or
    "least"), entity_pair, estimate with low and high, apart (how many intervals at the other end do
    not overlap this one), share (of pairs answered correctly, as a mean over models), trials (pairs
    of prompts times models), effective_trials and models. Ties are ordered by name. No entity pair
    is at both ends: if there are fewer than 2 k, the better half is at one end and the rest are at
    the other. There are no rows if all estimates are equal.

    Args:
        entities: one row per model and entity pair, with paired_accuracy and pairs.
        k: number of entity pairs at each end.
    """
    cells = entities.dropna(subset=["paired_accuracy"])
    ranked = shrunken_shares(cells, group=CLUSTER, by="model", share="paired_accuracy", n="pairs")
    ranked = ranked.rename(columns={"cells": "models"})
    if ranked["estimate"].max() - ranked["estimate"].min() <= EQUAL:
        ranked = ranked[:0]  # names would decide who is at which end
    half = (len(ranked) + 1) // 2
    best = ranked.sort_values(["estimate", CLUSTER], ascending=[False, True]).head(min(k, half))
    worst = ranked.drop(best.index).sort_values(["estimate", CLUSTER]).head(k)
    separate = best[["low"]].to_numpy() > worst["high"].to_numpy()
    ends = [
        best.assign(end="most", apart=separate.sum(axis=1)),
        worst.assign(end="least", apart=separate.sum(axis=0)),
    ]
    last = ["share", "trials", "effective_trials", "models"]
    columns = ["end", CLUSTER, "estimate", "low", "high", "apart", *last]
    return pd.concat(ends, ignore_index=True)[columns]


def names_within(results: Results) -> pd.DataFrame:
    """Cities whose names contain their country's name, compared with other cities (Appendix G)."""
    facts = results.familiarity.drop_duplicates(CLUSTER).set_index(CLUSTER)
    cities = entities(results).query("entity_group == 'geographical'")
    names = facts.loc[cities[CLUSTER], ["entity_a", "entity_b"]].to_numpy()
    table = feature_contrast(
        cities.assign(city_contains_country=[a in b for a, b in names]),
        value="paired_accuracy",
        feature="city_contains_country",
    )
    return holm(table, family="cities that contain their country")


_SIDES = ("n_with", "n_without", "mean_with", "mean_without")


def feature_contrast(entities: pd.DataFrame, *, value: str, feature: str) -> pd.DataFrame:
    """Entity pairs with a feature, compared with those without it by a permutation test.

    One row for each model: model, feature, difference (with minus without), p, n_with,
    n_without, mean_with, mean_without, note. p is the two-sided share of reassignments of the
    feature whose difference of means is at least as large: twice the smaller tail, over 9,999
    reassignments drawn with a fixed seed plus the observed assignment. The test assumes nothing
    about the distribution of accuracies, many of which are 0 or 1. With fewer than ten entity pairs
    on either side, the test would have no power and is omitted.

    Args:
        entities: one row per entity pair (and model).
        value: the column to compare; missing values are omitted.
        feature: a boolean column, such as whether the city's name contains that of its country.
    """
    rows = []
    for cell, own in grouped(entities.dropna(subset=[value]), ["model"]):
        has = own[feature].astype(bool)
        sides = [own.loc[mask, value].to_numpy(dtype=float) for mask in (has, ~has)]
        sizes = [len(side) for side in sides]
        means = [float(side.mean()) if len(side) else np.nan for side in sides]
        p, note = np.nan, ""
        if min(sizes) < FEWEST:
            few, n = ("with", sizes[0]) if sizes[0] < FEWEST else ("without", sizes[1])
            note = (
                f"not tested, for lack of power: {counted(n, 'entity pair')} {few} the feature, "
                f"at least {FEWEST} needed"
            )
        elif own[value].nunique() == 1:
            note = "undefined: all values equal"
        else:
            p = stats.permutation_test(
                sides,
                lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
                vectorized=True,
                n_resamples=PERMUTATIONS,
                rng=np.random.default_rng(0),
            ).pvalue
        tested = {"difference": means[0] - means[1], "p": float(p), "note": note}
        described = dict(zip(_SIDES, (*sizes, *means), strict=True))
        rows.append({**cell, "feature": feature, **tested, **described})
    columns = ["model", "feature", "difference", "p", *_SIDES, "note"]
    return pd.DataFrame(rows, columns=columns)
