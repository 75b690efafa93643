"""Entity pairs: their accuracy and its correlates (Appendix G)."""

import pandas as pd

from interp.extend import page
from interp.extend.results import column_name
from interp.extend.statistics import holm, shrunken_shares, spearman_table
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair, with the number of its pairs.

    {method}_ratio is the mean of the defined score ratios over both sides; only cities have a
    familiarity, a probability.
    """
    keys = ["model", CLUSTER]
    by_entity = results.judged("entity_group").groupby(keys, sort=False)
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
    ratios = ("gradient_ratio", "attention_ratio")
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *ratios)]
    pairs += [("familiarity", ratio) for ratio in ratios]
    table = spearman_table(entities(results), pairs=pairs, by=["model"])
    return holm(table, family="across entity pairs")


def extremes(entities: pd.DataFrame, *, k: int = 10) -> pd.DataFrame:
    """The k entity pairs with the highest estimated accuracy and the k with the lowest.

    Estimates are shrunk towards the overall mean (`interp.statistics.proportions`), since otherwise
    both ends would consist of the entity pairs with the fewest prompts. share: of pairs answered
    correctly, as a mean over models. Ties are ordered by name. None is at both ends: of fewer than
    2 k, the better half is at one. There are no rows if all estimates are equal.
    """
    cells = entities.dropna(subset=["paired_accuracy"])
    ranked = shrunken_shares(cells, group=CLUSTER, by="model", share="paired_accuracy", n="pairs")
    ranked = ranked.rename(columns={"cells": "models"})
    if ranked["estimate"].max() - ranked["estimate"].min() <= 1e-9:
        ranked = ranked[:0]  # they differ by rounding: names would decide who is at which end
    half = (len(ranked) + 1) // 2
    best = ranked.sort_values(["estimate", CLUSTER], ascending=[False, True]).head(min(k, half))
    worst = ranked.drop(best.index).sort_values(["estimate", CLUSTER]).head(k)
    separate = best[["low"]].to_numpy() > worst["high"].to_numpy()
    ends = [
        best.assign(end="most", apart=separate.sum(axis=1)),
        worst.assign(end="least", apart=separate.sum(axis=0)),
    ]
    first = ["end", CLUSTER, "estimate", "low", "high", "apart"]
    last = ["share", "trials", "effective_trials", "models"]
    return pd.concat(ends, ignore_index=True)[[*first, *last]]


def entity_section(results: Results) -> page.Section:
    """Appendix G."""
    table = entities(results)
    return page.Section(
        "Entity pairs",
        "Which entity pairs are answered well?",
        (
            page.TableItem(
                "entity_extremes",
                "Entity pairs with the highest and the lowest estimates (Appendix G)",
                extremes(table),
                "Estimates are empirical Bayes: the fewer trials an entity pair has, the more its "
                "estimate shrinks towards the overall mean. Intervals are 95%. None is listed if "
                "all estimates are equal: entity pairs then differ no more than by chance. apart: "
                "number of entity pairs at the other end whose intervals do not overlap. trials: "
                "pairs of prompts times models; effective_trials: number of trials, corrected "
                "for the correlation of a model's answers about one entity pair.",
            ),
            page.TableItem(
                "entities", "All entity pairs", table, "familiarity is defined for cities only."
            ),
        ),
    )
