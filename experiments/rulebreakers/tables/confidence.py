"""Confidence in positive answers, right and wrong."""

import pandas as pd

from interp.statistics.clusters import ClusterMean, cluster_mean_table
from interp.statistics.decisions import holm
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT
from interp_experiments.rulebreakers.tables.comparisons import (
    every_model,
    finding_words,
    papers_test,
)
from interp_experiments.rulebreakers.tables.positive_answers import answered_pairs, positive_answers


def confidence(results: Results) -> pd.DataFrame:
    """Confidence in positive answers, right and wrong, one row per model (Figure 5; formulas 4-7).

    `difference` is that within pairs of which both sides are answered positively: the probability
    of the positive answer on the non-rulebreaker, where it is right, minus that on the rulebreaker,
    where it is wrong. Pairs of one entity are one cluster (`interp.statistics.clusters`).
    `share` is how many pairs are compared. Intervals are cut at -1 and 1.

    The columns that end in `_paper` are the paper's: Welch's test of all positive answers on either
    side. It counts the prompts about one entity as independent, and it compares different entities,
    since the rulebreakers that are answered positively are those that the model fails.
    """
    positive = positive_answers(results)
    compared = _both_accepted(positive)
    table = cluster_mean_table(compared, value="difference", cluster=CLUSTER, weight=WEIGHT)
    table = every_model(table, results, ClusterMean).rename(columns={"mean": "difference"})
    table[["low", "high"]] = table[["low", "high"]].clip(-1.0, 1.0)
    table = holm(table.rename(columns={"trials": "pairs"}), family="confidence")
    table.insert(
        1, "finding", finding_words(table, more="surer when right", less="surer when wrong")
    )
    pairs = positive.groupby("model")["pair_id"].nunique()
    table.insert(7, "share", table["pairs"] / table["model"].map(pairs))
    accepted = positive[positive["accepted_by_probability"]]
    return table.merge(
        papers_test(accepted, value="confidence", group="side", groups=(SIDES[1], SIDES[0])),
        on="model",
        how="left",
    )


def confidence_differences(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: mean difference of confidence within pairs, and pairs."""
    compared = _both_accepted(positive_answers(results))
    by_entity = compared.groupby(["model", CLUSTER], sort=False)["difference"]
    return by_entity.agg(difference="mean", pairs="size").reset_index()


def _both_accepted(positive: pd.DataFrame) -> pd.DataFrame:
    pairs = answered_pairs(positive)
    accepted = pairs[[f"accepted_by_probability_{side}" for side in SIDES]]
    both: pd.DataFrame = pairs[accepted.eq(True).all(axis=1)]
    right, wrong = (both[f"confidence_{side}"].astype(float) for side in reversed(SIDES))
    return both.assign(difference=right - wrong)
