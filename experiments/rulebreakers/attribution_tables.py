"""Tables of score ratios and familiarity: across models, cities and prompts, and as published."""

import numpy as np
import pandas as pd

from interp.measurements.attribution.ratios import ratio_table
from interp.statistics.classical import least_rank_p, spearman_table
from interp.statistics.clusters import ClusterContrast, cluster_contrast_table
from interp.statistics.decisions import holm
from interp_experiments.rulebreakers.answer_tables import (
    WEIGHT,
    accuracy,
    every_model,
    finding_words,
    papers_test,
)
from interp_experiments.rulebreakers.results import CLUSTER, Results
from interp_experiments.scaffold import published_table

_RATIO_COLUMNS = {
    "ratio": {
        "geometric": "{}_geometric",
        "geometric_low": "{}_geometric_low",
        "geometric_high": "{}_geometric_high",
        "mean": "{}_mean_ratio",
        "sd": "{}_sd",
        "largest_share": "{}_largest_share",
    },
    "ratio_unnormalized": {"mean": "{}_mean_ratio_unnormalized", "sd": "{}_unnormalized_sd"},
}
"""For each kind of ratio, columns in the ratio table and their names in the attribution table."""


RATIOS = ("gradient_geometric", "attention_geometric")
"""Columns of the attribution table whose correlation with accuracy across models is computed."""


def attribution(results: Results) -> pd.DataFrame:
    """Accuracies, score ratios and mean familiarity, one row per model (Tables 2 and 3).

    Columns are model; {measure}_accuracy, paired_low, paired_high; for each method
    {method}_geometric with _low and _high, {method}_mean_ratio and {method}_sd for the ratio of
    means, {method}_largest_share, {method}_mean_ratio_unnormalized and {method}_unnormalized_sd for
    the ratio of sums, all as in `interp.measurements.attribution.ratios`; familiarity (the mean
    over the cities asked about); and pairs.
    """
    shares, summed = accuracy(results), ratios(results)
    by_measure = shares.pivot(index="model", columns="measure")
    table = by_measure["accuracy"][shares["measure"].unique()].add_suffix("_accuracy")
    for end in ("low", "high"):
        table[f"paired_{end}"] = by_measure[end]["paired"]
    for kind, columns in _RATIO_COLUMNS.items():
        rows = summed[summed["ratio"] == kind].set_index(["method", "model"])
        for method in summed["method"].unique():
            names = {name: column.format(method) for name, column in columns.items()}
            table = table.join(rows.loc[method, list(names)].rename(columns=names))
    table = table.join(results.cities().groupby("model")["familiarity"].mean())
    table["pairs"] = by_measure["pairs"]["paired"]
    ordered: pd.DataFrame = table.loc[shares["model"].unique()].reset_index()
    return ordered.rename_axis(columns=None)


def ratios(results: Results) -> pd.DataFrame:
    """Robust summaries of score ratios, one row per model, method and ratio."""
    return ratio_table(results.ratios, results.prompts, cluster=CLUSTER)


def model_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations with paired accuracy across models.

    Score ratios are summarized by geometric means, so no single prompt decides the order of models.
    """
    pairs = [(name, "paired_accuracy") for name in (*RATIOS, "familiarity")]
    table = spearman_table(attribution(results), pairs=pairs)
    return holm(table.assign(p_least=table["n"].map(least_rank_p)), family="across models")


def published_tables() -> pd.DataFrame:
    """The paper's Tables 2 and 3; the methods of their columns are inferred from Section 6."""
    return published_table("interp_experiments.rulebreakers", "published_tables.csv")


def measured_and_published(results: Results) -> pd.DataFrame:
    """Measured and published numbers for the models that are in both the study and the paper."""
    measured = attribution(results)
    # The paper omits owners: its Phi-3-mini-128k-instruct is microsoft/Phi-3-mini-128k-instruct. No
    # organism is one of its models.
    measured = measured[~measured["model"].str.startswith("organism/")]
    names = measured["model"].str.split("/").str[-1]
    return published_difference(measured.assign(model=names), published_tables())


def published_difference(measured: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row for each model in both tables and each published quantity.

    Columns are model, quantity, measured, published, and difference (measured minus published, in
    the quantity's unit; undefined if either is).
    """
    theirs = published.set_index("model")
    ours = measured.set_index("model").reindex(columns=theirs.columns)
    ours = ours[ours.index.isin(theirs.index)]
    values = {"measured": ours, "published": theirs.loc[ours.index]}
    table = pd.DataFrame({name: rows.astype(float).stack() for name, rows in values.items()})
    table["difference"] = table["measured"] - table["published"]
    return table.rename_axis(["model", "quantity"]).reset_index()


ALL = "all"
"""The comparison that is tested: all cities, by the first token of the country, as in the paper."""

AFTER_ECHO = "all, after an echo"
"""The comparison of all cities by the first token in a reply that first repeats the sentence."""


def familiarity(results: Results) -> pd.DataFrame:
    """Familiarity of recognized and failed cities, one row per model and set of cities (Figure 6).

    `difference` is the familiarity of recognized pairs minus that of failed ones, with an interval
    over cities: a city has one familiarity, however many prompts are about it
    (`interp.statistics.clusters`). Only one row per model is tested: that for all cities, by the
    probability of the first token, which is the paper's familiarity. The other rows are robustness
    checks: one is for the cities whose country shares its first token with no other country, and
    two are for all cities, by the probability of the country's whole name and by that of its first
    token after an echo. These have neither p nor finding, because they would repeat the same test.
    Folders of versions that did not measure echoes have no row about them.

    The columns that end in `_paper` are the paper's test: Welch's, which counts a city once for
    each pair of prompts about it, and so rejects most true null hypotheses.
    """
    pairs = results.pairs()
    tested = _compared(results, pairs, "familiarity")
    table = holm(tested.assign(cities=ALL), family="familiarity")
    words = finding_words(table, more="recognized more familiar", less="recognized less familiar")
    described = [
        _compared(results, chosen, value).assign(cities=name, finding="", p=np.nan)
        for name, chosen, value in (
            ("own first token", pairs[pairs["shared_with"] == 0], "familiarity"),
            ("all, by P(whole name)", pairs, "whole_name"),
            (AFTER_ECHO, pairs.dropna(subset="after_echo"), "after_echo"),
        )
        if len(chosen)
    ]
    table = pd.concat([table.assign(finding=words), *described], ignore_index=True)
    # pandas turns counts into floats where rows lack them.
    table = table.astype(dict.fromkeys(["n_a_paper", "n_b_paper", "family_size"], "Int64"))
    first = ["model", "cities", "finding", "difference", "low", "high", "p", "p_holm"]
    return table[[*first, *table.columns.drop(first)]]


def _compared(results: Results, pairs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Recognized compared with failed pairs by one measure of familiarity, and the paper's test."""
    groups = ("recognized", "failed")
    table = cluster_contrast_table(
        pairs, value=value, group="group", groups=groups, cluster=CLUSTER, weight=WEIGHT
    )
    table = every_model(table, results, ClusterContrast).drop(columns=["group_a", "group_b"])
    names = {
        f"{column}_{letter}": f"{column}_{group}"
        for column in ("mean", "low", "high", "clusters", "trials")
        for letter, group in zip("ab", groups, strict=True)
    }
    paper = papers_test(pairs, value=value, group="group", groups=groups)
    return table.rename(columns=names).merge(paper, on="model", how="left")


def city_familiarity(results: Results, value: str = "familiarity") -> pd.DataFrame:
    """One row per model, city and group ("recognized", "failed"): familiarity, pairs.

    `value` is "familiarity", "whole_name" or "after_echo"; cities without it are left out.
    """
    pairs = results.pairs().dropna(subset=value)
    cities = pairs.groupby(["model", "entity_pair", "group"], sort=False)
    return cities[value].agg(familiarity="first", pairs="size").reset_index()


def echoing(results: Results) -> pd.DataFrame:
    """By model: the cities asked about, and those after which the model repeats the sentence.

    Columns are model, cities and echoes; no rows if echoes were not measured.
    """
    cities = results.cities().reindex(columns=["model", "echoes"]).dropna()
    grouped = cities.astype({"echoes": bool}).groupby("model", sort=False)["echoes"]
    return grouped.agg(cities="size", echoes="sum").reset_index()


def shared_first_tokens(results: Results) -> pd.DataFrame:
    """By model: the numbers of countries (answers) and of those sharing a first token (sharing)."""
    cities = results.cities()
    answers = cities.assign(shared=cities["shared_with"] > 0)
    grouped = answers.drop_duplicates(["model", "entity_a"]).groupby("model", sort=False)["shared"]
    return grouped.agg(answers="size", sharing="sum").reset_index()
