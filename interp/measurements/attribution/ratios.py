"""Score ratios by model: Tables 2 and 3 of Chan et al. 2024, and robust summaries.

A ratio has no upper bound. One prompt whose denominator is close to zero can dominate the mean of
thousands, so the mean may exceed one although nearly all ratios are below one.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import stdtrit

from interp.analysis.accuracy import accuracy_table
from interp.attribution.registry import DEFAULT_METHODS
from interp.errors import UserError
from interp.statistics.clusters import FEWEST, NAN, standard_error, too_few
from interp.statistics.means import estimates
from interp.statistics.summaries import (
    UPPER,
    grouped,
    largest_share,
    weighted_mean,
    weighted_quantile,
    weighted_sd,
)

Summary = Callable[[Float[np.ndarray, " n"], Float[np.ndarray, " n"]], float]
"""Function that reduces values and their weights to one number."""

_RATIOS: Mapping[str, Mapping[str, Summary]] = {
    "ratio": {"{method}_mean_ratio": weighted_mean, "{method}_sd": weighted_sd},
    "ratio_unnormalized": {
        "{method}_mean_ratio_unnormalized": weighted_mean,
        "{method}_unnormalized_sd": weighted_sd,
    },
}
"""Columns of the ratios, with the columns of their mean and standard deviation."""

_ROBUST = ("geometric", "geometric_low", "geometric_high", "median", "largest_share")
"""Summaries of `ratio_table` that no single prompt can dominate, and its share in the mean."""


def column_name(method: str) -> str:
    """The name of a method in columns; the published tables call the input gradient "gradient"."""
    return "gradient" if method == "input_gradient" else method


def attribution_table(
    ratios: pd.DataFrame,
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    summaries: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row per model, in the column order of the published tables.

    Columns are model; gradient_mean_ratio, gradient_sd, attention_mean_ratio, attention_sd: mean
    and sample standard deviation, over all prompts, of the ratio of two segments' mean scores
    (premise 2 over premise 1 if there are premises); four such columns for the ratio of the
    segments' sums; paired_accuracy, the accuracy of each side, and prompts. In each group of four,
    the columns of other methods follow those of the gradient and attention. The columns of a method
    that was not run are empty. Means exclude undefined ratios.

    Each prompt counts by its weight, as in `interp.analysis.accuracy.accuracies`. The last columns
    of each method are {method}_geometric (with _low and _high) and {method}_median of the ratios of
    means, and {method}_largest_share: the share of the largest ratio in their sum. If it exceeds
    0.05, the mean depends on one prompt, but the geometric mean and the median do not.

    Args:
        ratios: the table of `interp.measurements.attribution.segments.segment_ratios`.
        answers: rows of the answers table.
        prompts: the prompts table.
        summaries: the table of `ratio_table`; by default with each pair as a cluster.

    Raises:
        UserError: the ratios belong to several targets.
    """
    targets = ratios["target"].unique()
    if len(targets) > 1:
        raise UserError(
            f"the ratios belong to the targets {', '.join(targets)}; expected a single target: "
            "select the rows of one"
        )
    methods = list(dict.fromkeys([*DEFAULT_METHODS, *ratios["method"]]))
    weighed = ratios.merge(prompts[["prompt_id", "weight"]], on="prompt_id")
    statistics = pd.concat(
        [
            _by_model(weighed[weighed["method"] == method], column, summaries, method)
            for column, summaries in _RATIOS.items()
            for method in methods
        ],
        axis="columns",
    )
    accuracy = accuracy_table(answers, prompts)
    table = accuracy[["model"]].join(statistics, on="model").join(accuracy.drop(columns="model"))
    if summaries is None:
        summaries = ratio_table(ratios, prompts, cluster="pair_id")
    summaries = summaries[summaries["ratio"] == "ratio"].set_index(["method", "model"])
    for method in map(column_name, methods):
        index = pd.MultiIndex.from_product([[method], table["model"]])
        for name in _ROBUST:
            table[f"{method}_{name}"] = summaries[name].reindex(index).to_numpy(dtype=float)
    return table


def _by_model(
    ratios: pd.DataFrame, column: str, summaries: Mapping[str, Summary], method: str
) -> pd.DataFrame:
    """One row per model, with the summaries of its defined ratios."""
    rows = {}
    for model, members in ratios.dropna(subset=[column]).groupby("model"):
        values, weights = (members[name].to_numpy(dtype=float) for name in (column, "weight"))
        rows[model] = [summary(values, weights) for summary in summaries.values()]
    names = [name.format(method=column_name(method)) for name in summaries]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names, dtype=float)


LARGE_SHARE = 0.05
"""A prompt with a larger share of the sum of all ratios dominates their mean."""

KINDS = ("ratio", "ratio_unnormalized")
"""Columns of the ratios: of means over tokens (Table 2), and of sums (Table 3)."""

_NUMBERS = (
    "largest_share",
    *("geometric", "geometric_low", "geometric_high"),
    *("median", "median_low", "median_high"),
    *("mean", "mean_low", "mean_high"),
    "sd",
)


def ratio_table(ratios: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str) -> pd.DataFrame:
    """One row per model, method and kind of ratio, with prompts weighted to represent the data set.

    Columns are model, method ("gradient" is the input gradient), ratio ("ratio" or
    "ratio_unnormalized"); largest_share: the largest share of one prompt in the sum of all ratios;
    geometric mean, median and mean, each with a 95% interval; sd, the sample standard deviation;
    prompts, clusters and note. The intervals of the means are those of `interp.statistics.means`
    (the geometric mean's on the log scale). The interval of the median is Woodruff's (1952, JASA
    47) with Student's t: its ends are the quantiles at the two ends of the interval for the share
    of ratios below the median. The geometric mean is 0 if any ratio is 0. Undefined ratios are
    omitted, and intervals are undefined for fewer than ten clusters.

    Args:
        ratios: the table of `interp.measurements.attribution.segments.segment_ratios`.
        prompts: the prompts table, with prompt_id, weight and the cluster.
        cluster: the column of the clusters of prompts, such as their entity.
    """
    rows = ratios.merge(prompts[["prompt_id", "weight", cluster]], on="prompt_id")
    found = [
        {
            **cell,
            "method": column_name(str(cell["method"])),
            "ratio": kind,
            **_summary(members[kind], members["weight"], members[cluster]),
        }
        for kind in KINDS
        for cell, members in grouped(rows.dropna(subset=[kind]), ["model", "method"])
    ]
    columns = ["model", "method", "ratio", *_NUMBERS, "prompts", "clusters", "note"]
    return pd.DataFrame(found, columns=columns)


def _summary(ratios: pd.Series, weight: pd.Series, cluster: pd.Series) -> dict[str, object]:
    values, weights = (column.to_numpy(dtype=float) for column in (ratios, weight))
    clusters = pd.factorize(cluster)[0]
    with np.errstate(divide="ignore"):
        geometric = np.exp(_mean(np.log(values), weights, clusters))
    median, mean = (of(values, weights, clusters) for of in (_median, _mean))
    largest, sd = largest_share(values, weights), weighted_sd(values, weights)
    numbers = map(float, (largest, *geometric, *median, *mean, sd))
    count = int(clusters.max()) + 1
    zeros = int((values == 0).sum())
    notes = [too_few(count)] if count < FEWEST else []
    if zeros:
        notes.append(f"{zeros:,} of {len(values):,} ratios are 0, so their geometric mean is 0")
    counts = {"prompts": len(values), "clusters": count, "note": "; ".join(notes)}
    return {**dict(zip(_NUMBERS, numbers, strict=True)), **counts}


def _mean(
    values: Float[np.ndarray, " prompts"],
    weights: Float[np.ndarray, " prompts"],
    clusters: Int[np.ndarray, " prompts"],
) -> tuple[float, float, float]:
    """The weighted mean and its interval."""
    sums = np.stack([np.bincount(clusters, part) for part in (weights * values, weights)])
    if not np.isfinite(sums).all():
        return float(sums[0].sum() / sums[1].sum()), NAN, NAN
    mean = estimates(sums[:1], sums[1:], np.ones_like(sums[:1], dtype=bool), against=None)
    return float(mean.value[0]), float(mean.low[0]), float(mean.high[0])


def _median(
    values: Float[np.ndarray, " prompts"],
    weights: Float[np.ndarray, " prompts"],
    clusters: Int[np.ndarray, " prompts"],
) -> tuple[float, float, float]:
    """The weighted median and its interval."""
    quantile = partial(weighted_quantile, values, weights)
    median = quantile(0.5)
    count = int(clusters.max() + 1)
    if count < FEWEST:
        return median, NAN, NAN
    shares = (values < median) + (values == median) / 2
    deviations = np.bincount(clusters, weights * (shares - np.average(shares, weights=weights)))
    half = float(stdtrit(count - 1, UPPER)) * standard_error(deviations, weights.sum())
    return median, quantile(0.5 - half), quantile(0.5 + half)
