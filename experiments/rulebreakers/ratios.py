"""Score ratios beside accuracy, across models, entity pairs and prompts, and as published."""

from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from interp.extend import counted
from interp.extend.figures import labeled_points
from interp.extend.page import FigureItem, Section, TableItem, number_text, with_interval
from interp.extend.results import LARGE_SHARE, ratio_table
from interp.extend.statistics import holm, least_rank_p, spearman_table
from interp_experiments.rulebreakers.accuracy import accuracy, marks
from interp_experiments.rulebreakers.entities import draw_familiarity, entities, entity_correlations
from interp_experiments.rulebreakers.prompt_models import prompt_models
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

_RATIOS = ("gradient_geometric", "attention_geometric")
"""Those whose correlation with accuracy across models is computed."""


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


def published_difference(measured: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row for each model in both tables and each published quantity.

    `difference` is measured minus published, in the quantity's unit; undefined if either is.
    """
    theirs = published.set_index("model")
    # The paper omits owners: its Phi-3-mini-128k-instruct is microsoft/Phi-3-mini-128k-instruct. No
    # organism is one of its models.
    measured = measured[~measured["model"].str.startswith("organism/")]
    ours = measured.set_index(measured["model"].str.split("/").str[-1])
    ours = ours[ours.index.isin(theirs.index)].reindex(columns=theirs.columns)
    values = {"measured": ours, "published": theirs.loc[ours.index]}
    table = pd.DataFrame({name: rows.astype(float).stack() for name, rows in values.items()})
    table["difference"] = table["measured"] - table["published"]
    return table.rename_axis(["model", "quantity"]).reset_index()


def outliers(table: pd.DataFrame) -> list[str]:
    """A sentence on mean score ratios that depend on a single prompt."""
    kept = table[table["ratio"] == "ratio"]
    large = kept[kept["largest_share"] > LARGE_SHARE]
    return [
        f"In {len(large)} of {len(kept)} combinations of model and method, a single prompt "
        f"accounts for more than {LARGE_SHARE:.0%} of the sum of score ratios (table Score "
        "ratios); for these, use the median or the geometric mean instead of the mean."
    ] * bool(len(large))


def attribution_section(results: Results) -> Section:
    """Tables 2 and 3, and the numbers published for the same models."""
    measured = attribution(results)
    published = published_table(__package__, "published_tables.csv")
    both = published_difference(measured, published)
    note = "Only models that the paper also measured. difference: measured minus published."
    compared = [TableItem("published", "Measured and published", both, note)]
    inferred = "Which method a column shows is inferred from the text of Section 6."
    if both.empty:
        compared = []
        inferred = f"The paper measured none of this study's models. {inferred}"
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
            TableItem(
                "attribution",
                "Score ratios and accuracy (Tables 2 and 3)",
                measured,
                "Columns that end in _mean_ratio and _sd are the mean and the standard deviation "
                "over prompts, as published; familiarity is the mean over the cities asked about.",
            ),
            *compared,
            TableItem(
                "published_tables", "As published", published, inferred, no_pairs="published"
            ),
        ),
    )


def model_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations with paired accuracy across models.

    Score ratios are summarized by geometric means, so no single prompt decides the order of models.
    """
    pairs = [(name, "paired_accuracy") for name in (*_RATIOS, "familiarity")]
    table = spearman_table(attribution(results), pairs=pairs)
    return holm(table.assign(p_least=table["n"].map(least_rank_p)), family="across models")


def correlation_section(results: Results) -> Section:
    """Correlates of accuracy across models, entity pairs and prompts."""
    models, pairs, mark = attribution(results), entities(results), marks(results)
    across_prompts = prompt_models(results)
    correlations, across_pairs = model_correlations(results), entity_correlations(results)
    cities = pairs[pairs["entity_group"] == "geographical"]
    scatter = [
        FigureItem(
            f"{ratio}_and_accuracy",
            f"{ratio.partition('_')[0].capitalize()} ratio and paired accuracy across models",
            partial(_draw_ratio, mark(models), ratio=ratio),
            "Points: paired accuracy against the geometric mean over prompts of score ratios (a "
            "token of premise 2 over a token of premise 1). Whiskers: 95% intervals, clustered by "
            f"entity pair. {_rho(correlations, ratio)}",
        )
        for ratio in _RATIOS
    ]
    return Section(
        "Correlates of accuracy",
        "What varies with accuracy: across models, across a model's entity pairs, across prompts.",
        (
            *scatter,
            TableItem(
                "model_correlations",
                "Across models: Spearman's correlation",
                correlations,
                "Familiarity is the mean over the cities asked about. For up to eight models, p "
                "is exact and comes from all permutations.",
            ),
            FigureItem(
                "familiarity_and_accuracy",
                "Familiarity and paired accuracy across cities",
                lambda: draw_familiarity(mark(cities), mark(across_pairs)),
                "Dots: cities; area: number of pairs of prompts. Dots are shifted vertically by "
                "up to 0.02 to separate overlapping ones. rho: Spearman's correlation over "
                "cities; p: corrected by Holm's method over all correlations across entity pairs.",
            ),
            TableItem(
                "entity_correlations",
                "Across entity pairs: Spearman's correlation",
                across_pairs,
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


def _draw_ratio(table: pd.DataFrame, *, ratio: str) -> Axes:
    ax = labeled_points(
        table, x=ratio, y="paired_accuracy", label="model",
        x_interval=(f"{ratio}_low", f"{ratio}_high"), y_interval=("paired_low", "paired_high"),
    )  # fmt: skip
    ax.set_xlabel(ax.get_xlabel().replace("geometric", "ratio, geometric mean"))
    return ax


def _rho(correlations: pd.DataFrame, ratio: str) -> str:
    row = correlations[correlations["x"] == ratio].iloc[0]
    if pd.isna(row["rho"]):
        return f"Spearman's correlation is {row['note']}."
    rho = with_interval(row["rho"], row["low"], row["high"])
    note = f" ({row['note']})" if row["note"] else ""
    p = f", p_holm {number_text(row['p_holm'], p_value=True)}" * pd.notna(row["p_holm"])
    return f"Spearman's rho {rho}{note}{p}, over {counted(int(row['n']), 'model')}."
