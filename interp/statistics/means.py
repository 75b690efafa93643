"""Means and ratios of sums over clusters: one interval and one test, for any number of cells.

A cell is a number to estimate, such as the mean effect of one edge. Its clusters have sums of
values and sums of weights ("masses"); the estimate is the ratio of their totals.

The studentized bootstrap over clusters (Efron, 1981; Hall, 1988, Annals of Statistics 16), with the
linearized error of a ratio of sums (Cochran, 1977, Sampling Techniques, 6.3), adapts to skewed
clusters. Where few clusters differ from the others, its p alone is far too small: of 2 clusters in
64 that differ from 0, both upward, every other sign is as likely, so p is 0.5. So the interval also
reaches over the means of random subsets of the clusters (Hartigan, 1969, JASA 64), which the test
by random signs does not reject, and p is the larger of both. A ratio of two means of which the one
below has clusters of either sign has only the bootstrap.

Cells with the same clusters are computed together, as products of matrices. Of many clusters, equal
ones are drawn together, which changes nothing but the time; if most differ, they are first added
up in `POOLS` random groups of equal size, which are as independent as the clusters are.
"""

from dataclasses import dataclass
from itertools import count

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.statistics.clusters import FEWEST, LEAST_ERROR, NAN, RESAMPLES, too_few
from interp.statistics.decisions import SIGNIFICANT
from interp.statistics.resampling import ROUNDING, bootstrap_counts, least_sign_p, random_signs
from interp.statistics.summaries import LEVEL

FINE = 39_999
"""Number of resamples for p of at most `SMALL`, enough to survive correction for many cells."""

SMALL = 0.01

MANY, POOLS = 1000, 300
"""Number of clusters from which equal ones are drawn together and, doubled, from which others are
pooled; and the number of pools."""

_TIE = 1e-9
"""Difference between a cell's value and the tested one, relative to the cell's mean size, that
rounding can cause."""

_HELD = 1_000_000
"""Number of resampled values that are held at a time; more than a processor caches takes twice as
long."""

Numbers = Float[np.ndarray, " cells"]


@dataclass(frozen=True)
class Estimates:
    """Estimates of several cells; what is undefined is NaN."""

    value: Numbers
    low: Numbers
    """Lower end of the 95% interval."""
    high: Numbers
    p: Numbers
    """Two-sided, for the value tested: at most 0.05 if and only if the interval excludes it."""
    least: Numbers
    """The smallest p that so many clusters and resamples allow."""
    flat: Bool[np.ndarray, " cells"]
    """Whether no cluster deviates from the others: then there is no interval, and p is that of
    random signs."""


NO_TRIALS = "undefined: no trials"
NO_DIVISOR = "undefined: what it is divided by is 0"
NO_SPREAD = "no interval: no cluster deviates from the others"
ZERO = "no interval: a value is 0, and so is the geometric mean"
UNBOUNDED = "no interval: a value is infinite, or what it is divided by may be 0"


@dataclass(frozen=True)
class ClusterMean:
    """A weighted mean over trials, tested against zero; undefined values are NaN, with a note."""

    mean: float
    low: float = NAN
    """Lower end of the 95% interval (`estimates`)."""
    high: float = NAN
    p: float = NAN
    """Two-sided p-value for a mean of 0: at most 0.05 if and only if the interval excludes 0."""
    trials: int = 0
    clusters: int = 0
    note: str = ""


def cluster_mean(trials: pd.DataFrame, *, value: str, cluster: str, weight: str) -> ClusterMean:
    """The weighted mean of a column, such as a difference within pairs, with its test.

    Missing values are omitted. With fewer than `FEWEST` clusters there is neither an interval nor a
    test. If all clusters have the same mean, there is no interval, and p comes from random signs.
    docs/statistics.md gives the simulated coverage.
    """
    trials = trials.dropna(subset=[value])
    if trials.empty:
        return ClusterMean(NAN, note=NO_TRIALS)
    weights = trials[weight].astype(float)
    weighted = trials[value].astype(float) * weights
    parts = pd.DataFrame({"sum": weighted, "mass": weights, "size": weighted.abs()})
    sums, masses, sizes = parts.groupby(trials[cluster]).sum().to_numpy().T
    # Such as 2/3 - 1/3 - 1/3, which is not 0 in floating-point numbers.
    sums = np.where(np.abs(sums) <= ROUNDING * sizes, 0.0, sums)
    mean = estimates(sums[None], masses[None], np.ones((1, len(sums)), dtype=bool))
    (note,) = reasons(mean, np.array([len(sums)]))
    center, low, high, p = (float(cells[0]) for cells in (mean.value, mean.low, mean.high, mean.p))
    return ClusterMean(center, low, high, p, trials=len(trials), clusters=len(sums), note=note)


def signs_agree(
    hits: Float[np.ndarray, " clusters"],
    trials: Float[np.ndarray, " clusters"],
    *,
    ends: tuple[float, float],
    p: float,
    against: float,
) -> tuple[float, float, float]:
    """The ends and p of a share of clusters' hits, joined with random signs as those of a mean.

    `ends` and `p` are those of another interval and test that agree with each other; `against` is
    the tested share.
    """
    share, used = np.atleast_1d(hits.sum() / trials.sum()), np.ones(len(hits), dtype=bool)
    together = _Together(hits[None], trials[None], used, share)
    lower, upper = together.subsets(FINE)
    (low,), (high,) = _reached(np.array(ends[:1]), np.array(ends[1:]), lower, upper)
    larger = max(p, 2 / (1 + FINE), *together.sign_p(lower, upper, against).tolist())
    return max(float(low), 0.0), min(float(high), 1.0), larger


def reasons(estimated: Estimates, clusters: Int[np.ndarray, " cells"]) -> np.ndarray:
    """Why a cell has no number or no interval, given its number of clusters; empty if it has."""
    few = np.array([too_few(int(count)) for count in clusters], dtype=object)
    cases = {
        NO_TRIALS: clusters == 0,
        NO_DIVISOR: np.isnan(estimated.value),
        "few": clusters < FEWEST,
        NO_SPREAD: estimated.flat,
        UNBOUNDED: np.isnan(estimated.low),
    }
    return np.select([*cases.values()], [few if name == "few" else name for name in cases], "")


def estimates(
    sums: Float[np.ndarray, "cells clusters"],
    masses: Float[np.ndarray, "cells clusters"],
    present: Bool[np.ndarray, "cells clusters"],
    *,
    against: float | None = 0.0,
    resamples: int | None = None,
) -> Estimates:
    """The ratio of the total of the sums to that of the masses, for each cell.

    A ratio has no interval if its masses' total lies on the other side of 0, or at 0, in more than
    1 - `LEVEL` of the resamples: then no values can be excluded (Fieller, 1954).

    Args:
        sums: each cluster's sum of weighted values.
        masses: each cluster's sum of weights or, for a ratio of two means, of the values below.
        present: the clusters that a cell has; of the others, nothing counts.
        against: the tested value; None if nothing is tested.
        resamples: their number, `RESAMPLES` by default; p of at most `SMALL` uses `FINE`.
    """
    resamples = resamples or RESAMPLES
    sums, masses = np.where(present, sums, 0.0), np.where(present, masses, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sums.sum(axis=1) / masses.sum(axis=1) + 0.0  # no minus zero
    value[np.abs(masses.sum(axis=1)) <= ROUNDING * np.abs(masses).sum(axis=1)] = np.nan
    low, high, p, least = (np.full(len(sums), np.nan) for _ in range(4))
    flat = np.zeros(len(sums), dtype=bool)
    for alike in _alike(masses, present):
        used, cells = present[alike[0]], alike[np.isfinite(value[alike])]
        clusters = int(used.sum())
        if clusters < FEWEST:
            continue
        for part in _parts(cells, resamples):
            together = _Together(sums[part], masses[part], used, value[part])
            drawn = together.drawn(resamples)
            low[part], high[part] = together.ends(*drawn)
            flat[part] = together.flat
            if against is not None:
                p[part] = together.p(*drawn, against)
        if against is not None:
            for part in _parts(cells[p[cells] <= SMALL], FINE):
                together = _Together(sums[part], masses[part], used, value[part])
                p[part] = together.p(*together.drawn(FINE), against)
            positive = (masses[cells[:1]][:, used] > 0).all()
            by_signs = least_sign_p(clusters, FINE) if positive else 0.0
            least[cells] = np.where(flat[cells], by_signs, max(2 / (1 + FINE), by_signs))
    return Estimates(value, low, high, p, least, flat)


def least_p(clusters: int) -> float:
    """The smallest p of a mean over so many clusters, whatever their values."""
    return max(2 / (1 + FINE), least_sign_p(clusters, FINE))


def clusters_for(tests: int) -> int | None:
    """The smallest number of clusters with which one of so many means can be significant.

    None if `FINE` resamples are too few for any number of clusters.
    """
    needed = SIGNIFICANT / tests
    if needed <= 2 / (1 + FINE):
        return None
    return next(clusters for clusters in count(FEWEST) if least_p(clusters) < needed)


def _alike(
    masses: Float[np.ndarray, "cells clusters"], present: Bool[np.ndarray, "cells clusters"]
) -> list[Int[np.ndarray, " _"]]:
    if (masses == masses[:1]).all() and (present == present[:1]).all():
        return [np.arange(len(masses))] if len(masses) else []
    _, group = np.unique(np.column_stack([masses, present]), axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _parts(cells: Int[np.ndarray, " cells"], resamples: int) -> list[Int[np.ndarray, " _"]]:
    size = max(1, _HELD // resamples)
    return [cells[start : start + size] for start in range(0, len(cells), size)]


Draws = Float[np.ndarray, "cells resamples"]


class _Together:
    """Cells that have the same clusters with the same masses."""

    def __init__(
        self,
        sums: Float[np.ndarray, "cells every"],
        masses: Float[np.ndarray, "cells every"],
        used: Bool[np.ndarray, " every"],
        value: Numbers,
    ) -> None:
        sums, masses, times = _merged(sums[:, used], masses[0, used])
        self.sums, self.masses, self.times, self.value = sums, masses, times, value
        # Of a ratio of two means, the one below may have clusters of either sign.
        self.signs = bool((masses > 0).all())
        self.mass, self.k = float(masses @ times), int(times.sum())
        self.away = sums - value[:, None] * masses
        error = np.sqrt(self.k / (self.k - 1) * (self.away**2 @ times)) / abs(self.mass)
        size = np.abs(sums) @ times / abs(self.mass)
        self.flat, self.tie = error <= ROUNDING * size, _TIE * size
        self.error = np.where(self.flat, 1.0, error)
        self.unbounded = False

    def drawn(self, resamples: int) -> tuple[Draws, np.ndarray, np.ndarray]:
        """What the ends and p are read from: `_distances`, and both parts of `subsets`."""
        lower, upper = self.subsets(resamples) if self.signs else (np.empty((0, 0)),) * 2
        return self._distances(resamples), lower, upper

    def ends(
        self, distances: Draws, lower: np.ndarray, upper: np.ndarray
    ) -> tuple[Numbers, Numbers]:
        """Both ends of each interval: draws, not interpolated, so that p always agrees."""
        low, high = studentized_ends(self.value, self.error, distances)
        if self.signs:
            low, high = _reached(low, high, lower, upper)
        none = self.flat | self.unbounded
        return np.where(none, np.nan, low), np.where(none, np.nan, high)

    def p(self, distances: Draws, lower: np.ndarray, upper: np.ndarray, against: float) -> Numbers:
        """The two-sided p of a value; that of random signs if no cluster deviates."""
        resamples = distances.shape[1]
        tested = ((self.value - against) / self.error)[:, None]
        beyond = np.minimum((distances >= tested).sum(axis=1), (distances <= tested).sum(axis=1))
        by_bootstrap = np.minimum(1.0, 2 * (1 + beyond) / (1 + resamples))
        by_bootstrap = np.where(self.flat | self.unbounded, np.nan, by_bootstrap)
        if not self.signs:
            return by_bootstrap
        return np.asarray(np.fmax(by_bootstrap, self.sign_p(lower, upper, against)))

    def sign_p(self, lower: Draws, upper: Draws, against: float) -> Numbers:
        """The two-sided p of a value by random signs, from both parts of `subsets`."""
        above = (self.value > against)[:, None]
        as_far = np.where(above, lower <= against, upper >= against).sum(axis=1)
        return np.where(self.value == against, 1.0, (1 + as_far) / (1 + lower.shape[1]))

    def _distances(self, resamples: int) -> Draws:
        """Of each resample's value from the data's, in the resample's standard errors."""
        counts, k = _counts(self.times, resamples), self.k
        mass, squared = _drawn(np.stack([self.masses, self.masses**2]), counts)
        self.unbounded = bool((mass * self.mass <= 0).mean() > 1 - LEVEL)
        mass[np.abs(mass) <= ROUNDING * abs(self.mass)] = ROUNDING * self.mass
        away = _drawn(self.away, counts)
        away /= mass
        # The squares of the deviations from the resample's own value.
        errors = _drawn(self.away**2, counts)
        if np.ptp(self.masses) == 0:
            errors -= away**2 * squared
        else:
            errors += away * (away * squared - 2 * _drawn(self.away * self.masses, counts))
        np.sqrt(np.maximum(errors, 0.0, out=errors), out=errors)
        errors *= np.sqrt(k / (k - 1)) / np.abs(mass)
        np.maximum(errors, (LEAST_ERROR * self.error)[:, None], out=errors)
        return np.asarray(np.divide(away, errors, out=away))

    def subsets(self, resamples: int) -> tuple[Draws, Draws]:
        """The smaller and the larger value of the clusters of either sign."""
        signs = _signs(self.times, resamples)
        drawn, mass = _drawn(self.sums, signs), _drawn(self.masses[None], signs)[0]
        # If all signs are the same, the sum is as far from any value as the observed one.
        same = np.abs(mass) >= self.mass * (1 - _TIE)
        mass[same] = 0.0
        total = (self.sums @ self.times)[:, None]
        kept = total + drawn
        kept /= self.mass + mass
        turned = np.subtract(total, drawn, out=drawn)
        turned /= self.mass - mass
        lower, upper = np.minimum(kept, turned), np.maximum(kept, turned, out=kept)
        lower -= self.tie[:, None]
        upper += self.tie[:, None]
        lower[:, same], upper[:, same] = -np.inf, np.inf
        return lower, upper


def _merged(
    sums: Float[np.ndarray, "cells clusters"], masses: Float[np.ndarray, " clusters"]
) -> tuple[
    Float[np.ndarray, "cells merged"], Float[np.ndarray, " merged"], Int[np.ndarray, " merged"]
]:
    """Sums and masses of clusters, and how many clusters have each of them."""
    stacked, times = np.vstack([sums, masses]), np.ones(k := len(masses), dtype=int)
    if k > MANY:
        kinds, counts = np.unique(stacked, axis=1, return_counts=True)
        if len(counts) <= POOLS:
            stacked, times = kinds, counts
        elif k > 2 * MANY:
            order = np.random.default_rng(0).permutation(k)
            stacked = np.add.reduceat(stacked[:, order], np.arange(POOLS) * k // POOLS, axis=1)
            times = np.ones(POOLS, dtype=int)
    return stacked[:-1], stacked[-1], times


def _counts(times: Int[np.ndarray, " merged"], resamples: int) -> Int[np.ndarray, "draws merged"]:
    """How often clusters of each kind are drawn in each resample."""
    if (times == 1).all():
        return bootstrap_counts(len(times), resamples)
    chance, k = np.random.default_rng(0), times.sum()
    return np.asarray(chance.multinomial(k, times / k, size=resamples))


def _signs(times: Int[np.ndarray, " merged"], resamples: int) -> Int[np.ndarray, "draws merged"]:
    """The sum of the random signs of the clusters of each kind, in each resample."""
    if (times == 1).all():
        return random_signs(len(times), resamples)
    chance = np.random.default_rng(0)
    return np.asarray(2 * chance.binomial(times, 0.5, size=(resamples, len(times))) - times)


def _reached(low: Numbers, high: Numbers, lower: Draws, upper: Draws) -> tuple[Numbers, Numbers]:
    """Both ends, over all values that random signs do not reject."""
    last = int((1 - LEVEL) * (1 + lower.shape[1]) + 0.5)
    return _widened(low, lower, last), -_widened(-high, -upper, last)


def _widened(low: Numbers, lower: Draws, last: int) -> Numbers:
    """The lower of `low` and each row's value of a rank, read only where it is lower."""
    beyond = (lower < low[:, None]).sum(axis=1) >= last
    low[beyond] = np.partition(lower[beyond], last - 1)[:, last - 1]
    return low


def studentized_ends(value: Numbers, error: Numbers, distances: Draws) -> tuple[Numbers, Numbers]:
    """Both ends of the interval of a studentized bootstrap.

    `distances` are those of each resample's value from the data's, in the resample's standard
    errors.
    """
    resamples = distances.shape[1]
    last = max(int((1 - LEVEL) / 2 * (1 + resamples)), 1)
    # Two partitions, one after the other, are faster than one for both ranks.
    ends = np.partition(distances, last - 1, axis=1)
    lowest = ends[:, last - 1].copy()
    ends[:, last:].partition(resamples - 2 * last, axis=1)
    return value - ends[:, resamples - last] * error, value - lowest * error


def _drawn(
    rows: Float[np.ndarray, "rows clusters"], draws: Int[np.ndarray, "resamples clusters"]
) -> Float[np.ndarray, "rows resamples"]:
    """The sums of rows over clusters, each as often, or with the sign, as it is drawn."""
    size = max(1, _HELD // draws.shape[1])
    parts = [
        rows @ draws[start : start + size].T.astype(float) for start in range(0, len(draws), size)
    ]
    return np.concatenate(parts, axis=1)
