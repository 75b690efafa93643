"""Score ratios beside accuracy, across models, entity pairs and prompts, and as published."""

import pandas as pd

from interp.extend.page import Section, TableItem
from interp.extend.results import ratio_table
from interp.extend.statistics import holm, least_rank_p, spearman_table
from interp_experiments.rulebreakers.accuracy import accuracy
from interp_experiments.rulebreakers.entities import entity_correlations
from interp_experiments.rulebreakers.prompt_models import prompt_models
from interp_experiments.rulebreakers.results import CLUSTER, Results
from interp_experiments.scaffold import compared_item, measured_and_published, published_table

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


def ratios(results: Results) -> pd.DataFrame:
    """Robust summaries of score ratios, one row per model, method and ratio."""
    return ratio_table(results.ratios, results.prompts, cluster=CLUSTER)


def attribution(results: Results) -> pd.DataFrame:
    """Accuracies, score ratios of means and of sums, mean familiarity by model (Tables 2 and 3)."""
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


def attribution_section(results: Results) -> Section:
    """Tables 2 and 3, and the numbers published for the same models."""
    published = published_table(__package__, "published_tables.csv")
    return Section(
        "Attribution",
        "Score of premise 2 divided by that of premise 1, from means over tokens (Table 2) and "
        "from sums (Table 3).",
        (
            TableItem(
                "ratios",
                "Score ratios",
                ratios(results),
                "Geometric mean, median and mean over prompts with 95% intervals clustered by "
                "entity pair. largest_share: the largest ratio as a share of the sum of all "
                "ratios; above 0.05, the mean depends on one prompt.",
            ),
            compared_item(
                "attribution",
                "Score ratios and accuracy (Tables 2 and 3)",
                measured_and_published(attribution(results), published),
                "Columns that end in _mean_ratio and _sd are the mean and the standard deviation "
                "over prompts; which method a published one is of is inferred from the text of "
                "Section 6. familiarity is the mean over the cities asked about.",
            ),
        ),
    )


def model_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations with paired accuracy across models.

    Score ratios are summarized by geometric means, so no single prompt decides the order of models.
    """
    measures = ("gradient_geometric", "attention_geometric", "familiarity")
    pairs = [(name, "paired_accuracy") for name in measures]
    table = spearman_table(attribution(results), pairs=pairs)
    return holm(table.assign(p_least=table["n"].map(least_rank_p)), family="across models")


def correlation_section(results: Results) -> Section:
    """Correlates of accuracy across models, entity pairs and prompts."""
    across_prompts = prompt_models(results)
    return Section(
        "Correlates of accuracy",
        "What varies with accuracy: across models, across a model's entity pairs, across prompts.",
        (
            TableItem(
                "model_correlations",
                "Across models: Spearman's correlation",
                model_correlations(results),
                "Familiarity is the mean over the cities asked about. For up to eight models, p "
                "is exact and comes from all permutations.",
            ),
            TableItem(
                "entity_correlations",
                "Across entity pairs: Spearman's correlation",
                entity_correlations(results),
                "Familiarity is defined for cities only; score ratios cover all entity pairs.",
            ),
            TableItem(
                "prompt_models",
                "Across prompts: correlates of a correct answer to a rulebreaker",
                across_prompts,
                "Log-odds of a correct answer per standard deviation, adjusted for the factors "
                "among rule, verb and phrasing that can be estimated (adjusted_for). "
                "ratio_of_entity: mean for an entity pair; ratio_within_entity: deviation from "
                "it. Estimates are averages over entity pairs; se: standard error, clustered by "
                "entity pair; df: degrees of freedom over entity pairs. left_out: prompts with "
                "a rule, verb or phrasing whose answers are all alike. Columns without any value "
                "are shown in the file only.",
                display=across_prompts.dropna(axis="columns", how="all"),
            ),
        ),
    )
