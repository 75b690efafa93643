"""Tests of trials that come in clusters, such as prompts about one city.

The unit is the cluster. A test over trials would treat many prompts about one city as many cities,
and would find differences that do not exist.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import stdtrit

from interp.statistics.resampling import apart, bootstrap_counts
from interp.statistics.summaries import LEVEL, UPPER, weighted_quantile

FEWEST = 10
"""Smallest number of clusters for a test. With fewer clusters, neither the bootstrap nor
Student's t is valid, and robust standard errors are too small (Cameron and Miller, 2015, Journal of
Human Resources 50).
"""

RESAMPLES = 9999
"""Number of random orders or signs in a permutation test, and number of bootstrap resamples."""

LEAST_ERROR = 0.2
"""Lower limit on the standard error of a resample, relative to that of the data. Without it, a
resample without any deviating cluster would have a standard error of 0, and its mean would be
infinitely many standard errors away.
"""

NAN = float("nan")


@dataclass(frozen=True)
class ClusterContrast:
    """A property of clusters, compared between two groups of trials; undefined values are NaN.

    A cluster counts in each group by the weight of its trials there; a cluster with trials in both
    groups counts in both.
    """

    mean_a: float = NAN
    """Weighted mean over the trials of the first group."""
    low_a: float = NAN
    """Lower end of the 95% interval of mean_a: studentized bootstrap over clusters."""
    high_a: float = NAN
    mean_b: float = NAN
    low_b: float = NAN
    high_b: float = NAN
    difference: float = NAN
    """mean_a - mean_b."""
    low: float = NAN
    """Lower end of the difference's 95% interval: studentized bootstrap over clusters."""
    high: float = NAN
    p: float = NAN
    """Two-sided, from the same bootstrap: at most 0.05 if and only if the interval excludes 0."""
    clusters: int = 0
    clusters_a: int = 0
    """Number of clusters with a trial in the first group."""
    clusters_b: int = 0
    trials_a: int = 0
    trials_b: int = 0
    note: str = ""


def cluster_contrast(
    trials: pd.DataFrame,
    *,
    value: str,
    group: str,
    groups: tuple[Hashable, Hashable],
    cluster: str,
    weight: str,
) -> ClusterContrast:
    """Test whether clusters with high values have more of their trials in one of two groups.

    Missing values are omitted. If a group has fewer than `FEWEST` clusters, there is neither an
    interval nor a test. Values are constant within each cluster; trials of groups other than the
    two in `groups` are omitted.
    """
    trials = trials[trials[group].isin(groups)].dropna(subset=[value])
    if trials.empty:
        return ClusterContrast(note="undefined: no trials")
    in_group = np.column_stack([trials[group] == name for name in groups]).astype(float)
    parts = np.column_stack([in_group * trials[[weight]].to_numpy(dtype=float), in_group])
    sums = pd.DataFrame(parts).groupby(trials[cluster].to_numpy()).sum().to_numpy()
    weights, members = sums[:, :2], sums[:, 2:]
    values = trials.groupby(cluster)[value].first().to_numpy(dtype=float)
    with np.errstate(invalid="ignore"):
        mean_a, mean_b = (values @ weights / weights.sum(axis=0)).tolist()
    (clusters_a, clusters_b), (trials_a, trials_b) = (members > 0).sum(axis=0), members.sum(axis=0)
    contrast = ClusterContrast(
        mean_a=mean_a,
        mean_b=mean_b,
        difference=apart(mean_a, mean_b),
        clusters=len(members),
        clusters_a=int(clusters_a),
        clusters_b=int(clusters_b),
        trials_a=int(trials_a),
        trials_b=int(trials_b),
    )
    fewest = min(contrast.clusters_a, contrast.clusters_b)
    if fewest < FEWEST:
        return replace(contrast, note=too_few(fewest, "a group has "))
    (low_a, low_b, low), (high_a, high_b, high), p = _intervals(values, weights)
    return replace(
        contrast, low_a=low_a, high_a=high_a, low_b=low_b, high_b=high_b, low=low, high=high, p=p
    )


def _intervals(
    values: Float[np.ndarray, " clusters"], weights: Float[np.ndarray, "clusters 2"]
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Both ends for the means and their difference, and p: a studentized bootstrap (Hall, 1988)."""
    clusters = len(values)
    every = np.ones((1, clusters), dtype=int)
    (center,), (error,) = _differences_and_errors(values, weights, every)
    drawn, errors = _differences_and_errors(values, weights, bootstrap_counts(clusters, RESAMPLES))
    # A resample that lacks one of the groups has no mean; with `FEWEST` clusters this is rare.
    defined = np.isfinite(errors).all(axis=1)
    distances = (drawn - center)[defined] / np.maximum(errors[defined], LEAST_ERROR * error)
    last = max(int((1 - LEVEL) / 2 * (1 + len(distances))), 1)
    ranked = np.sort(distances, axis=0)
    low, high = center - ranked[-last] * error, center - ranked[last - 1] * error
    far = distances[:, 2] - center[2] / error[2]
    beyond = min((far >= 0).sum(), (far <= 0).sum())
    p = min(1.0, 2 * (1 + int(beyond)) / (1 + len(distances)))
    return tuple(low.tolist()), tuple(high.tolist()), p


def _differences_and_errors(
    values: Float[np.ndarray, " clusters"],
    weights: Float[np.ndarray, "clusters 2"],
    counts: Int[np.ndarray, "resamples clusters"],
) -> tuple[Float[np.ndarray, "resamples 3"], Float[np.ndarray, "resamples 3"]]:
    """The means of `a` and `b` and their difference, with standard errors, in each resample."""
    k, masses = len(values), counts @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        means = counts @ (values[:, None] * weights) / masses
        away = [
            (values - means[:, [side]]) * weights[:, side] / masses[:, [side]] for side in (0, 1)
        ]
    away.append(away[0] - away[1])
    squares = np.stack([(counts * deviations**2).sum(axis=1) for deviations in away], axis=1)
    differences = np.column_stack([means, means[:, 0] - means[:, 1]])
    return differences, np.sqrt(k / (k - 1) * squares)


def standard_error(deviations: Float[np.ndarray, " clusters"], mass: float) -> float:
    """The linearized standard error of a mean, from clusters' sums of weighted deviations from it.

    `mass` is the sum of all weights.
    """
    k = len(deviations)
    return float(np.sqrt(k / (k - 1) * (deviations**2).sum()) / mass)


def median_interval(
    values: Float[np.ndarray, " trials"],
    weights: Float[np.ndarray, " trials"],
    clusters: Int[np.ndarray, " trials"],
) -> tuple[float, float]:
    """The 95% interval of a weighted median; NaN for fewer than `FEWEST` clusters.

    Its ends are the quantiles at the two ends of the interval for the share of values below the
    median (Woodruff, 1952, JASA 47), with Student's t.
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count < FEWEST:
        return NAN, NAN
    median = weighted_quantile(values, weights, 0.5)
    shares = (values < median) + (values == median) / 2
    deviations = np.bincount(codes, weights * (shares - np.average(shares, weights=weights)))
    half = float(stdtrit(count - 1, UPPER)) * standard_error(deviations, weights.sum())
    low, high = (weighted_quantile(values, weights, 0.5 + end) for end in (-half, half))
    return low, high


def small_sample(clusters: Iterable[Hashable], what: str) -> str:
    """A note, available before measuring, that tests will be impossible; otherwise empty.

    Clusters are read only until there are enough; `what` is "pair", "fact" or the clusters' factor.
    """
    seen: set[Hashable] = set()
    for cluster in clusters:
        seen.add(cluster)
        if len(seen) >= FEWEST:
            return ""
    several = "s" * (len(seen) != 1)
    plain = what in ("pair", "fact")
    number = f"{what}{several}" if plain else f"distinct value{several} of {what}"
    return (
        f"small sample: {len(seen)} {number}; tests and intervals need at least {FEWEST}, so most "
        "tables leave them empty"
    )


def too_few(clusters: int, before: str = "") -> str:
    """A note that there are too few clusters for a test; `before` precedes their number."""
    number = f"{clusters:,} cluster{'s' * (clusters != 1)}"
    return f"not tested: {before}{number}; at least {FEWEST} are needed"
