"""How well each model tells the sides of a pair apart."""

import pandas as pd

from interp.statistics.clusters import ClusterMean, cluster_mean_table
from interp.statistics.decisions import holm
from interp.statistics.discrimination import concordance, discrimination_table
from interp.statistics.proportions import proportions
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT
from interp_experiments.rulebreakers.tables.comparisons import every_model, finding_words
from interp_experiments.rulebreakers.tables.positive_answers import answered_pairs, positive_answers


def sensitivity(results: Results) -> pd.DataFrame:
    """How well each model tells the sides of a pair apart, one row per model.

    Columns are model; finding, in words; concordance with low, high, p, p_holm: the share of pairs
    whose non-rulebreaker has the higher probability of the positive answer relative to both, held
    against a half; paired_accuracy with its interval; then those of
    `interp.statistics.discrimination`: AUROC of that relative probability, d' and bias of the
    answers, and the paired accuracies to be expected by the rates of positive answers.

    Concordance and AUROC use every prompt, and need no line between Yes and No.
    """
    positive = positive_answers(results)
    pairs = answered_pairs(positive)
    order = concordance(pairs[f"relative_{SIDES[1]}"], pairs[f"relative_{SIDES[0]}"])
    pairs = pairs.assign(concordance=order, excess=order - 0.5)
    tested = cluster_mean_table(pairs, value="excess", cluster=CLUSTER, weight=WEIGHT)
    tested = holm(every_model(tested, results, ClusterMean), family="concordance")
    # The interval of a proportion, unlike Student's, has a width where every pair is in order.
    levels = proportions(
        pairs, values=["concordance"], by=["model"], cluster=CLUSTER, weight=WEIGHT
    ).set_index("model")
    table = tested.drop(columns=["low", "high"])
    table = table.join(levels[["share", "low", "high"]], on="model")
    table = table.rename(columns={"share": "concordance"})
    words = finding_words(
        table.assign(low=table["low"] - 0.5, high=table["high"] - 0.5),
        value="mean",
        more="more often in the right order",
        less="more often in the wrong order",
    )
    table.insert(1, "finding", words)
    separate = discrimination_table(
        positive.assign(positive=positive["side"] == SIDES[1]),
        score="relative",
        yes="accepted",
        positive="positive",
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    paired = accuracy(results).query("measure == 'paired'")[["model", "accuracy", "low", "high"]]
    paired.columns = pd.Index(["model", "paired_accuracy", "paired_low", "paired_high"])
    first = ["model", "finding", "concordance", "low", "high", "p", "p_holm"]
    counts = ["trials", "clusters", "note", "family", "family_size"]
    separate = separate.drop(columns="clusters").rename(columns={"note": "note_auroc"})
    return (
        table[first]
        .merge(paired, on="model", how="left")
        .merge(separate, on="model", how="left")
        .join(table[counts].rename(columns={"trials": "pairs"}))
    )
