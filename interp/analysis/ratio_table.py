"""Score ratios summed up so that no single prompt decides: one row per model, method and ratio.

A ratio has no upper end. One prompt whose denominator is nearly nothing can carry the mean of
thousands, which says "more than one" where nearly all ratios are below it.
"""

from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import stdtrit

from interp.analysis.attribution_table import column_name
from interp.analysis.clusters import FEWEST, NAN, standard_error, too_few
from interp.analysis.groups import grouped
from interp.analysis.intervals import UPPER, percentile_interval
from interp.analysis.resampling import bootstrap_sums
from interp.analysis.weighted import largest_share, weighted_quantile, weighted_sd

LARGE_SHARE = 0.05
"""A prompt that holds more of the sum of all ratios carries their mean."""

RESAMPLES = 2000
"""Bootstrap resamples of the clusters."""

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
    """One row per model, method and kind of ratio, weighted to the data set.

    Columns are model, method ("gradient" is the input gradient), ratio ("ratio" or
    "ratio_unnormalized"); largest_share: the largest part of the sum of all ratios that one prompt
    holds; geometric mean, median and mean, each with its 95% interval: percentile bootstrap over
    clusters, of the median Woodruff's (1952, JASA 47) with Student's t, which reads the quantiles
    at the ends of the interval of the share below it; sd, of a sample; prompts, clusters; note.
    The geometric mean is 0 where a ratio is. Undefined ratios are left out. Intervals are undefined
    below ten clusters.

    Args:
        ratios: what `interp.analysis.segments.segment_ratios` gives.
        prompts: the prompts table, with prompt_id, weight and the cluster.
        cluster: the column of the clusters of prompts, such as their entity.
    """
    rows = ratios.merge(prompts[["prompt_id", "weight", cluster]], on="prompt_id")
    found = [
        {**cell, "method": column_name(str(cell["method"])), "ratio": kind, **_summary(members)}
        for kind in KINDS
        for cell, members in (
            (cell, members.rename(columns={kind: "value", cluster: "cluster"}))
            for cell, members in grouped(rows.dropna(subset=[kind]), ["model", "method"])
        )
    ]
    columns = ["model", "method", "ratio", *_NUMBERS, "prompts", "clusters", "note"]
    return pd.DataFrame(found, columns=columns)


def _summary(rows: pd.DataFrame) -> dict[str, object]:
    values, weights = (rows[name].to_numpy(dtype=float) for name in ("value", "weight"))
    clusters = pd.factorize(rows["cluster"])[0]
    with np.errstate(divide="ignore"):
        logarithms = np.log(values)
    count = int(clusters.max()) + 1
    means = (_mean(column, weights, clusters) for column in (logarithms, values))
    (geometric, mean), median = means, _median(values, weights, clusters)
    largest, sd = largest_share(values, weights), weighted_sd(values, weights)
    numbers = (largest, *np.exp(geometric), *median, *mean, sd)
    found = dict(zip(_NUMBERS, map(float, numbers), strict=True))
    return {
        **found,
        "prompts": len(rows),
        "clusters": count,
        "note": too_few(count) if count < FEWEST else "",
    }


def _mean(
    values: Float[np.ndarray, " prompts"],
    weights: Float[np.ndarray, " prompts"],
    clusters: Int[np.ndarray, " prompts"],
) -> tuple[float, float, float]:
    """The weighted mean and its interval."""
    sums = np.column_stack(
        [np.bincount(clusters, column) for column in (weights * values, weights)]
    )
    mean = sums[:, 0].sum() / sums[:, 1].sum()
    if len(sums) < FEWEST or not np.isfinite(mean):
        return mean, NAN, NAN
    resampled = bootstrap_sums(sums, resamples=RESAMPLES)
    return mean, *percentile_interval(resampled[:, 0] / resampled[:, 1])


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
