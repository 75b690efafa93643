"""Trials in clusters, such as prompts about one city: what is tested, and how.

The unit of every test here is the cluster. A test over trials takes the many prompts about one city
for as many cities, and finds differences where there are none.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtrit

from interp.analysis.groups import table_by
from interp.analysis.intervals import UPPER, percentile_interval
from interp.analysis.resampling import (
    bootstrap_sums,
    permutation_sums,
    random_sign_sums,
    share_as_far,
)

FEWEST = 10
"""Clusters below which nothing is tested: neither the bootstrap nor Student's t holds for so few,
errors robust to them are too small (Cameron and Miller, 2015, Journal of Human Resources 50), and
hardly any difference would show."""

RESAMPLES = 9999
"""Random orders or signs of a permutation test, and bootstrap resamples."""

NAN = float("nan")


@dataclass(frozen=True)
class ClusterMean:
    """A weighted mean over trials, held against zero; NaN where undefined, and `note` says why."""

    mean: float
    low: float = NAN
    """Lower end of the 95% interval: Student's t for clusters - 1 degrees of freedom, with the
    linearised variance of a ratio of sums (Cochran, 1977, Sampling Techniques, 6.3)."""
    high: float = NAN
    p: float = NAN
    """Two-sided, by random signs of the clusters' sums: that a cluster's trials are as likely to
    have the opposite sign."""
    trials: int = 0
    clusters: int = 0
    note: str = ""


@dataclass(frozen=True)
class ClusterContrast:
    """A property of clusters, compared between two groups of trials; NaN where undefined.

    A cluster counts in each group by the weight of its trials there; a cluster with trials in both
    groups counts in both.
    """

    mean_a: float = NAN
    """Weighted mean over the trials of the first group."""
    low_a: float = NAN
    """Lower end of its 95% interval: percentile bootstrap over clusters."""
    high_a: float = NAN
    mean_b: float = NAN
    low_b: float = NAN
    high_b: float = NAN
    difference: float = NAN
    """mean_a - mean_b."""
    low: float = NAN
    """Lower end of the difference's 95% interval: percentile bootstrap over clusters."""
    high: float = NAN
    p: float = NAN
    """Two-sided, by random orders of the values over the clusters, which keep their trials."""
    clusters: int = 0
    clusters_a: int = 0
    """Clusters with a trial in the first group."""
    clusters_b: int = 0
    trials_a: int = 0
    trials_b: int = 0
    note: str = ""


def cluster_mean(trials: pd.DataFrame, *, value: str, cluster: str, weight: str) -> ClusterMean:
    """The weighted mean of a column, such as a difference within pairs, with its test.

    Missing values are left out. There is no interval and no test below `FEWEST` clusters.

    Args:
        trials: one row per trial.
        value: the column that is averaged.
        cluster: the column of the clusters.
        weight: the column of their weights.
    """
    trials = trials.dropna(subset=[value])
    if trials.empty:
        return ClusterMean(NAN, note="undefined: no trials")
    weights = trials[weight].astype(float)
    parts = pd.DataFrame({"sum": trials[value].astype(float) * weights, "mass": weights})
    sums, masses = parts.groupby(trials[cluster]).sum().to_numpy().T
    found = ClusterMean(
        mean=float(sums.sum() / masses.sum()), trials=len(trials), clusters=len(sums)
    )
    if found.clusters < FEWEST:
        return replace(found, note=too_few(found.clusters))
    error = standard_error(sums - found.mean * masses, masses.sum())
    half = float(stdtrit(found.clusters - 1, UPPER)) * error
    p = share_as_far(random_sign_sums(sums, resamples=RESAMPLES), float(sums.sum()))
    return replace(found, low=found.mean - half, high=found.mean + half, p=p)


def cluster_contrast(
    trials: pd.DataFrame,
    *,
    value: str,
    group: str,
    groups: tuple[Hashable, Hashable],
    cluster: str,
    weight: str,
) -> ClusterContrast:
    """Whether clusters of high value have more of their trials in one group than in the other.

    Missing values are left out. There is no interval and no test where fewer than `FEWEST` clusters
    have a trial in either group.

    Args:
        trials: one row per trial.
        value: the column that is compared, the same in all trials of a cluster.
        group: the column that says which group a trial belongs to.
        groups: its two values, a and b; trials with others are left out.
        cluster: the column that names the cluster.
        weight: the column of the trials' weights.
    """
    trials = trials[trials[group].isin(groups)].dropna(subset=[value])
    if trials.empty:
        return ClusterContrast(note="undefined: no trials")
    in_group = np.column_stack([trials[group] == name for name in groups]).astype(float)
    parts = np.column_stack([in_group * trials[[weight]].to_numpy(dtype=float), in_group])
    sums = pd.DataFrame(parts).groupby(trials[cluster].to_numpy()).sum().to_numpy()
    weights, members = sums[:, :2], sums[:, 2:]
    values = trials.groupby(cluster)[value].first().to_numpy(dtype=float)
    found = _counted(members, *_two_means(np.append(values @ weights, weights.sum(0))[None, :])[0])
    fewest = min(found.clusters_a, found.clusters_b)
    if fewest < FEWEST:
        return replace(found, note=too_few(fewest, "a group has"))
    orders = permutation_sums(values, weights / weights.sum(axis=0), resamples=RESAMPLES)
    p = share_as_far(orders[:, 0] - orders[:, 1], found.difference)
    (low_a, high_a), (low_b, high_b), (low, high) = _intervals(values, weights)
    return replace(
        found, low_a=low_a, high_a=high_a, low_b=low_b, high_b=high_b, low=low, high=high, p=p
    )


def cluster_contrast_table(
    trials: pd.DataFrame,
    *,
    value: str,
    group: str,
    groups: tuple[Hashable, Hashable],
    cluster: str,
    weight: str,
) -> pd.DataFrame:
    """One row for each model: model, group_a, group_b and the fields of ClusterContrast."""
    contrast = partial(
        cluster_contrast, value=value, group=group, groups=groups, cluster=cluster, weight=weight
    )
    names = dict(zip(("group_a", "group_b"), groups, strict=True))
    return table_by(trials, ["model"], ClusterContrast, contrast, constant=names)


def cluster_mean_table(
    trials: pd.DataFrame, *, value: str, cluster: str, weight: str
) -> pd.DataFrame:
    """One row for each model: model and the fields of ClusterMean."""
    mean = partial(cluster_mean, value=value, cluster=cluster, weight=weight)
    return table_by(trials, ["model"], ClusterMean, mean)


def standard_error(deviations: Float[np.ndarray, " clusters"], mass: float) -> float:
    """The linearised standard error of a weighted mean.

    Args:
        deviations: by cluster, the sum of weighted deviations of its trials from the mean.
        mass: the sum of all weights.
    """
    k = len(deviations)
    return float(np.sqrt(k / (k - 1) * (deviations**2).sum()) / mass)


def too_few(clusters: int, what: str = "there are") -> str:
    """Why nothing is tested."""
    return f"not tested: {what} {clusters:,} clusters, at least {FEWEST} needed"


def _counted(
    members: Float[np.ndarray, "clusters 2"], mean_a: float, mean_b: float, difference: float
) -> ClusterContrast:
    """The two means with the trials and clusters that they are over."""
    (clusters_a, clusters_b), (trials_a, trials_b) = (members > 0).sum(axis=0), members.sum(axis=0)
    return ClusterContrast(
        mean_a=float(mean_a),
        mean_b=float(mean_b),
        difference=float(difference),
        clusters=len(members),
        clusters_a=int(clusters_a),
        clusters_b=int(clusters_b),
        trials_a=int(trials_a),
        trials_b=int(trials_b),
    )


def _intervals(
    values: Float[np.ndarray, " clusters"], weights: Float[np.ndarray, "clusters 2"]
) -> list[tuple[float, float]]:
    """The intervals of both means and of the difference."""
    columns = np.column_stack([values[:, None] * weights, weights])
    means = _two_means(bootstrap_sums(columns, resamples=RESAMPLES))
    # A resample without any trial of a group has no mean; with `FEWEST` clusters hardly any is.
    means = means[~np.isnan(means).any(axis=1)]
    return [percentile_interval(column) for column in means.T]


def _two_means(sums: Float[np.ndarray, "resamples 4"]) -> Float[np.ndarray, "resamples 3"]:
    """Both means and their difference, from weighted sums of a and b and their weights."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums[:, :2] / sums[:, 2:]
    return np.column_stack([means, means[:, 0] - means[:, 1]])
