"""Intervals of proportions for trials in clusters, and shrunken proportions for ranking groups.

Each end is a quantile of the share over random weights of the clusters (exponential, as in the
Bayesian bootstrap; Rubin, 1981). One cluster of mean size is added to the data: it has no hits for
the lower end, and only hits for the upper end. If the added cluster's mean weight is one, this is
the bound of Gaffke (2005; Learned-Miller and Thomas, 2020), which is Clopper and Pearson's for
clusters of one trial; here its mean weight is one half. Because the weights do not depend on the
outcomes, an additional error never raises an end. An interval whose variance is estimated from the
errors lacks this property and is narrowest for a single error. benchmarks/rates.md has rates.

For `continuous` shares, such as a segment's share of a prompt's scores, half a cluster at 0 or 1 is
far too much: 60 shares between 0.05 and 0.09 would have an upper end of 0.13. There, the added
cluster lies `_BEYOND` times the range of the clusters beyond their farthest one, and further in
proportion if the clusters are skewed towards that end, but never beyond 0 or 1.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.statistics.clusters import FEWEST
from interp.statistics.summaries import UPPER, Z, grouped

DRAWS = 4000
"""Number of random draws of the clusters' weights."""

_BEYOND = 0.5
"""How far beyond the farthest cluster the added one lies, in ranges of symmetric clusters."""


def proportions(
    outcomes: pd.DataFrame,
    *,
    values: Sequence[str],
    by: Sequence[str],
    cluster: str | None,
    weight: str | None = None,
    continuous: bool = False,
) -> pd.DataFrame:
    """One row for each combination of `by` and column of outcomes.

    Columns are those of `by`, measure (the column's name), share (the proportion of true values),
    low and high (its 95% interval), n (trials), clusters and note. Trials of one cluster are
    treated as dependent; without `cluster`, all trials are independent, and the interval is
    Wilson's. With one cluster the interval is undefined (NaN) and `note` says so.

    Args:
        outcomes: one row per trial.
        values: the columns to count, booleans or shares from 0 to 1; NA is not a trial.
        by: the columns whose combinations of values are counted separately.
        cluster: the clustering variable of the trials.
        weight: the column with the number of trials of the population that each trial represents.
            Wilson's interval is for the effective number of trials (Kish, 1965); clusters count by
            the sums of their trials' weights.
        continuous: whether the values are continuous shares, so that those observed tell how far
            others may lie from them; with fewer than ten clusters, they may lie anywhere.
    """
    sums = _sums(outcomes, values, by, cluster, weight)
    rows = [
        {**about, **_row(cell, cluster is not None, continuous)}
        for about, cell in grouped(sums, [*by, "measure"])
    ]
    columns = [*by, "measure", "share", "low", "high", "n", "clusters", "note"]
    return pd.DataFrame(rows, columns=columns)


def _sums(
    outcomes: pd.DataFrame,
    values: Sequence[str],
    by: Sequence[str],
    cluster: str | None,
    weight: str | None,
) -> pd.DataFrame:
    """One row per measure, `by` and cluster: n, weighted hits, trials and squared weights."""
    keys = list(dict.fromkeys([*by, *([cluster] if cluster else [])]))
    mass = outcomes[weight].astype(float) if weight else pd.Series(1.0, outcomes.index)
    parts = []
    for name in values:
        is_judged = outcomes[name].notna()
        judged, w = outcomes[is_judged], mass[is_judged]
        parts.append(
            judged[keys].assign(
                measure=name, n=1, hits=judged[name].astype(float) * w, trials=w, squares=w**2
            )
        )
    each = pd.concat(parts, ignore_index=True)
    cells = each.groupby([*keys, "measure"], sort=False, observed=True, dropna=False)
    return cells[["n", "hits", "trials", "squares"]].sum().reset_index()


def _row(cell: pd.DataFrame, clustered: bool, continuous: bool) -> dict[str, object]:
    """The share, interval and counts of one measure, from its clusters."""
    hits, trials = (cell[name].to_numpy(dtype=float) for name in ("hits", "trials"))
    n, share = int(cell["n"].sum()), float(hits.sum() / trials.sum())
    clusters, note = len(cell), ""
    if not clustered:
        clusters, kish = n, trials.sum() ** 2 / cell["squares"].sum()
        low, high = (float(end[0]) for end in wilson(*map(np.atleast_1d, (share, kish, Z))))
    elif clusters > 1:
        farthest = _farthest(hits / trials) if continuous else (0.0, 1.0)
        low, high = share_drawn(hits, trials, farthest).ends()
    else:
        low, high, note = np.nan, np.nan, "interval undefined: one cluster"
    return {"share": share, "low": low, "high": high, "n": n, "clusters": clusters, "note": note}


class Drawn(NamedTuple):
    """A share, or a difference between two, with draws of what it may be at least and at most."""

    value: float
    least: Float[np.ndarray, " draws"]
    """With an added cluster that lies as low as possible."""
    most: Float[np.ndarray, " draws"]

    def ends(self, upper: float = UPPER) -> tuple[float, float]:
        """Both ends of the interval; `upper` is the probability below the upper one."""
        low, high = np.quantile(self.least, 1 - upper), np.quantile(self.most, upper)
        # With rounding, or equal shares in all clusters, an end may pass the value itself.
        return min(float(low), self.value), max(float(high), self.value)

    def p(self, against: float) -> float:
        """The level at which the interval ends at `against`; 0 if hardly a draw reaches so far."""
        # As quantiles are interpolated between draws, so that p and the ends agree.
        ranks = np.linspace(0.0, 1.0, DRAWS)
        below, up_to = (
            float(np.interp(against, np.sort(draws), ranks)) for draws in (self.least, self.most)
        )
        return min(1.0, 2 * min(below, 1 - up_to))


def share_drawn(
    hits: Float[np.ndarray, " clusters"],
    trials: Float[np.ndarray, " clusters"],
    farthest: tuple[float, float] = (0.0, 1.0),
) -> Drawn:
    """A share, from each cluster's hits and trials and the shares that an added one may have."""
    weights, (added, _) = _weights(len(hits))
    # The mean, over trials, of the size of a trial's cluster.
    added = added * (trials**2).sum() / trials.sum()
    drawn, all_ = weights @ hits, weights @ trials + added
    low, high = ((drawn + share * added) / all_ for share in farthest)
    return Drawn(float(hits.sum() / trials.sum()), low, high)


def _farthest(shares: Float[np.ndarray, " clusters"]) -> tuple[float, float]:
    """The lowest and the highest share that another cluster is assumed to have."""
    low, middle, high = np.quantile(shares, [0.0, 0.5, 1.0])
    if len(shares) < FEWEST or low == high:
        return 0.0, 1.0
    with np.errstate(divide="ignore"):
        skew = (high - middle) / (middle - low)
        down, up = [_BEYOND * (high - low) * max(1.0, ratio) for ratio in (1 / skew, skew)]
    return float(max(0.0, low - down)), float(min(1.0, high + up))


@lru_cache(maxsize=8)
def _weights(
    clusters: int,
) -> tuple[Float[np.ndarray, "draws clusters"], Float[np.ndarray, "2 draws"]]:
    """Random weights of the clusters and of two added clusters, identical in every call."""
    chance = np.random.default_rng(0)
    weights = chance.standard_exponential((DRAWS, clusters))
    # The added cluster has half the mean weight of the others.
    return weights, chance.gamma(0.5, size=(2, DRAWS))


def difference_drawn(a: pd.DataFrame, b: pd.DataFrame, *, paired: bool) -> Drawn:
    """The difference between two shares, a - b, from -1 to 1.

    It is computed as one share. A cluster with trials of both shares has the same weight in both.
    For the lower end, the cluster added to `a` has no hits and the cluster added to `b` has only
    hits; for the upper end, it is the other way round. The two added clusters have the same weight
    in a paired comparison, and separate weights in an unpaired one. Both tables have hits and
    trials, indexed by cluster.
    """
    clusters = a.index.union(b.index)
    weights, added = _weights(len(clusters))
    drawn, totals, further = [], [], []
    for sums, more in zip((a, b), added[[0, 0 if paired else 1]], strict=True):
        hits, trials = sums.reindex(clusters, fill_value=0.0)[["hits", "trials"]].to_numpy(float).T
        further.append(more * (trials**2).sum() / trials.sum())
        drawn.append(weights @ hits)
        totals.append(weights @ trials + further[-1])
    return Drawn(
        float(a["hits"].sum() / a["trials"].sum() - b["hits"].sum() / b["trials"].sum()),
        drawn[0] / totals[0] - (drawn[1] + further[1]) / totals[1],
        (drawn[0] + further[0]) / totals[0] - drawn[1] / totals[1],
    )


def wilson(
    share: Float[np.ndarray, " cells"],
    trials: Float[np.ndarray, " cells"],
    quantile: Float[np.ndarray, " cells"],
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """Wilson's interval (1927) for shares of given numbers of trials, with any quantiles."""
    shrink = quantile**2 / trials
    center = (share + shrink / 2) / (1 + shrink)
    half = quantile * np.sqrt(share * (1 - share) / trials + shrink / trials / 4) / (1 + shrink)
    return np.clip(center - half, 0.0, share), np.clip(center + half, share, 1.0)


def shrunken_shares(
    cells: pd.DataFrame, *, group: str, by: str, share: str, n: str
) -> pd.DataFrame:
    """One row per group: `group`, estimate, low, high, share, trials, effective_trials, cells.

    Small groups have the most extreme shares. So each group's mean deviation from the models' means
    is shrunk by the share of its variance that is due to sampling: the empirical Bayes estimate of
    normal means (Morris, 1983, JASA 78). Cells count as their effective numbers of trials.

    `share` is the plain mean over the group's cells, and `trials` is the sum of n. `estimate` is
    the shrunken mean, with a 95% posterior interval that treats the variance between groups as
    known. If groups differ no more than chance would explain, all estimates are equal. Cells are of
    one group and one model (`by`), with the share of hits among n trials.
    """
    hits = cells[share] * cells[n]
    of_model = cells.assign(hits=hits).groupby(by)[["hits", n]].transform("sum")
    mean = of_model["hits"] / of_model[n]
    correlation = within_cells(
        cells[share].to_numpy(float), cells[n].to_numpy(float), mean.to_numpy(float)
    )
    effective = cells[n] / (1 + (cells[n] - 1) * correlation)
    table = (
        cells.assign(
            deviation=cells[share] - mean,
            variance=mean * (1 - mean) / effective,
            mean=mean,
            effective=effective,
        )
        .groupby(group)
        .agg(
            share=(share, "mean"),
            deviation=("deviation", "mean"),
            variance=("variance", "sum"),
            mean=("mean", "mean"),
            trials=(n, "sum"),
            effective_trials=("effective", "sum"),
            cells=(n, "size"),
        )
    )
    sampling = (table["variance"] / table["cells"] ** 2).to_numpy(float)
    between = between_groups(table["deviation"].to_numpy(float), sampling)
    kept = between / (between + sampling) if between > 0 else np.zeros(len(table))
    table["estimate"] = table["mean"] + kept * table["deviation"]
    half = Z * np.sqrt(kept * sampling)
    table["low"] = (table["estimate"] - half).clip(0.0, 1.0)
    table["high"] = (table["estimate"] + half).clip(0.0, 1.0)
    columns = ["estimate", "low", "high", "share", "trials", "effective_trials", "cells"]
    return table[columns].reset_index()


def within_cells(
    share: Float[np.ndarray, " cells"],
    n: Float[np.ndarray, " cells"],
    mean: Float[np.ndarray, " cells"],
) -> float:
    """The correlation of two trials of one cell, from 0 to 1; 0 if no cell has two trials.

    One minus the ratio of the unbiased variance within cells to that of all trials (Donner, 1986,
    International Statistical Review 54). `mean` is the share of hits over all trials of the cell's
    model.
    """
    share, n, mean = (values[n > 1] for values in (share, n, mean))
    variance = np.average(mean * (1 - mean), weights=n) if len(n) else 0.0
    if variance == 0:
        return 0.0
    within = share * (1 - share) * n / (n - 1)
    return float(np.clip(1 - np.average(within, weights=n) / variance, 0.0, 1.0))


def between_groups(
    deviations: Float[np.ndarray, " groups"], sampling: Float[np.ndarray, " groups"]
) -> float:
    """The variance between groups beyond their sampling variances (DerSimonian and Laird, 1986)."""
    deviations, sampling = deviations[sampling > 0], sampling[sampling > 0]
    if len(sampling) < 2:
        return 0.0
    weights = 1 / sampling
    excess = deviations - np.average(deviations, weights=weights)
    scale = weights.sum() - (weights**2).sum() / weights.sum()
    return float(max(0.0, ((weights * excess**2).sum() - (len(weights) - 1)) / scale))
