"""Tables of entity pairs: which are answered well, and what correlates with it (Appendix G)."""

import numpy as np
import pandas as pd
from scipy import stats

from interp.analysis.accuracy import pairs_of
from interp.analysis.ratios import column_name
from interp.errors import UserError
from interp.statistics.classical import spearman_table
from interp.statistics.clusters import FEWEST
from interp.statistics.decisions import holm
from interp.statistics.proportions import shrunken_shares
from interp.statistics.summaries import grouped
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results


def entity_level(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    ratios: pd.DataFrame,
    familiarity: pd.DataFrame,
    *,
    key: str,
    sides: tuple[str, ...],
) -> pd.DataFrame:
    """One row per model and entity pair.

    Columns are model, `key`, {side}_accuracy for each side, paired_accuracy, pairs (how many),
    {method}_ratio for each method, familiarity. {method}_ratio is the mean score ratio over the
    prompts of both sides, without undefined ratios; familiarity is a probability, undefined if it
    was not measured.

    Args:
        answers: rows of the answers table.
        prompts: the prompts table.
        ratios: the table from `interp.analysis.segments.segment_ratios`.
        familiarity: model, `key` and familiarity, one row each.
        key: the prompts' column that names their entity pair, as in `prompt_level`.
        sides: names of the sides of a pair.

    Raises:
        UserError: `key` is not a column, or differs between the sides of a pair.
    """
    pairs = pairs_of(answers, prompts, keep=[key], sides=sides)
    pairs["paired"] = pairs[list(sides)].all(axis=1)
    grouped = pairs.groupby(["model", key], sort=False)
    accuracy = grouped[[*sides, "paired"]].mean().add_suffix("_accuracy").astype(float)
    of_entities = ratios[["model", "prompt_id", "method", "ratio"]].merge(
        prompts[["prompt_id", key]], on="prompt_id", validate="many_to_one"
    )
    by_method = of_entities.groupby(["model", key, "method"], sort=False)["ratio"].mean().unstack()
    by_method = by_method.rename(columns=column_name)
    table = accuracy.assign(pairs=grouped.size()).join(by_method.add_suffix("_ratio"))
    return table.join(familiarity.set_index(["model", key])["familiarity"]).reset_index()


PERMUTATIONS = 9999
"""Random reassignments of the feature."""

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
    """The k entity pairs that the models answer best, and the k that they answer worst.

    They are ordered by an estimate shrunk towards the overall mean
    (`interp.statistics.proportions`), since otherwise those with the fewest prompts
    are at both ends.
    Columns are end ("most" or "least"), rank (from 1), `key`, estimate with low and high, share
    (of pairs answered correctly, mean over models), trials: pairs of prompts times models,
    effective_trials, models. Ties are ordered by name. No entity pair is at both ends: with fewer
    than 2 k, the better half is at one end and the rest at the other.

    Args:
        entities: one row per model and entity pair, as from `entity_level`.
        key: the column that names an entity pair.
        k: number of entity pairs at each end.

    Raises:
        UserError: k is less than 1.
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
    with a fixed seed and the one observed. Nothing is assumed about the distribution of accuracies,
    which piles up at 0 and 1. With fewer than ten entity pairs on either side there is no power,
    and no test.

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


ENTITY_RATIOS = ("gradient_ratio", "attention_ratio")
"""Columns of the table of entity pairs whose correlations are computed."""

EXTREMES = 10
"""Entity pairs named at either end of Appendix G's list."""


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: accuracies, mean ratios, familiarity, number of pairs.

    Only cities have a familiarity.
    """
    columns = ["entity_pair", "entity_group"]
    groups = results.prompts[columns].drop_duplicates()
    table = entity_level(
        results.answers,
        results.prompts,
        results.ratios,
        results.cities(),
        key="entity_pair",
        sides=SIDES,
    )
    table = table.merge(groups, on="entity_pair")
    return table[["entity_pair", "model", *table.columns.drop(["entity_pair", "model"])]]


def entity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations across each model's entity pairs; for familiarity, its cities."""
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *ENTITY_RATIOS)]
    pairs += [("familiarity", ratio) for ratio in ENTITY_RATIOS]
    table = spearman_table(entities(results), pairs=pairs, by=["model"])
    return holm(table, family="across entity pairs")


def extremes(results: Results) -> pd.DataFrame:
    """The entity pairs most and least often answered correctly, over all models (Appendix G)."""
    return most_and_least(entities(results), key="entity_pair", k=EXTREMES)


def names_within(results: Results) -> pd.DataFrame:
    """Cities whose name contains their country's, against the others (Appendix G)."""
    facts = results.familiarity.drop_duplicates("entity_pair").set_index("entity_pair")
    cities = entities(results).query("entity_group == 'geographical'")
    country = cities["entity_pair"].map(facts["entity_a"])
    city = cities["entity_pair"].map(facts["entity_b"])
    contained = [a in b for a, b in zip(country, city, strict=True)]
    table = feature_contrast(
        cities.assign(city_contains_country=contained),
        value="paired_accuracy",
        feature="city_contains_country",
    )
    return holm(table, family="cities that contain their country")
