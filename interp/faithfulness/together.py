"""Intervals and tests that hold for all methods of a model together, so also for the best of them.

The unit is the cluster of prompts. Every prompt has its own donors, so variation between donors is
part of the variation between clusters.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, stdtrit
from scipy.stats import rankdata

from interp.statistics.clusters import standard_error
from interp.statistics.summaries import LEVEL

DRAWS = 9999
"""Random weights of clusters for intervals, and random signs of clusters for tests."""

ADDED = 0.5
"""Mean weight of the cluster added to a share (`interp.statistics.proportions`)."""

ROUNDING = 1e-9

ByCluster = Float[np.ndarray, "methods clusters"]
Ends = tuple[Float[np.ndarray, " methods"], Float[np.ndarray, " methods"]]


def share_intervals(sums: ByCluster, masses: ByCluster) -> Ends:
    """95% intervals of weighted means of values between 0 and 1, for all methods together.

    The bound of Gaffke (2005) with half an added cluster, as in `interp.statistics.proportions`, at
    the level at which 5% of the random weights leave the interval of some method (Beran 1988, J.
    Am. Stat. Assoc. 83). Clusters have the same weights for every method.

    Args:
        sums: weighted sums over the prompts of each cluster.
        masses: the sums of the weights.
    """
    chance = np.random.default_rng(0)
    weights = chance.standard_exponential((DRAWS, sums.shape[1]))
    extra = np.outer(chance.gamma(ADDED, size=DRAWS), (masses**2).sum(1) / masses.sum(1))
    drawn, whole = weights @ sums.T, weights @ masses.T + extra
    low, high = drawn / whole, (drawn + extra) / whole
    # The most extreme rank of each draw, over both ends of all methods.
    outermost = np.minimum(_ranks(low).min(1), _ranks(-high).min(1))
    place = int(np.quantile(outermost, 1 - LEVEL))
    lower, upper = (np.partition(ends, place, axis=0)[place] for ends in (low, -high))
    return lower, -upper


def _ranks(draws: Float[np.ndarray, "draws methods"]) -> Int[np.ndarray, "draws methods"]:
    """Number of draws below or equal to each one; ties are never extreme."""
    return np.asarray(rankdata(np.round(draws, 12), method="max", axis=0)).astype(int) - 1


def normal_intervals(
    values: Float[np.ndarray, " methods"],
    draws: Float[np.ndarray, "draws methods"],
    clusters: int,
) -> Ends:
    """95% intervals of values of any size, for all methods together.

    The half-width is the bootstrap's standard deviation times the 95% quantile of its largest
    deviation of any method, converted from a normal to Student's t distribution with clusters - 1
    degrees of freedom. NaN if a value is undefined, or most of its draws are.
    """
    known = np.isfinite(values) & (np.isfinite(draws).mean(0) > 0.5)
    ends = np.full((2, len(values)), np.nan)
    if known.any():
        spread = np.nanstd(draws[:, known], axis=0, ddof=1)
        far = np.abs(draws[:, known] - values[known]) / np.where(spread > ROUNDING, spread, np.inf)
        normal = np.quantile(np.nan_to_num(far).max(1), LEVEL)
        half = stdtrit(clusters - 1, ndtr(normal)) * spread
        ends[:, known] = values[known] - half, values[known] + half
    return ends[0], ends[1]


def compared(
    differences: Float[np.ndarray, "methods methods clusters"],
    masses: Float[np.ndarray, "methods methods clusters"],
    best: int,
) -> tuple[Float[np.ndarray, " methods"], Ends]:
    """For each method, the p-value that none is better, and intervals for the lead of the best.

    A method's statistic is its largest deficit to any other: the sum over clusters of the
    differences, over the root of the sum of their squares. It is compared with random signs of
    clusters, the same for all pairs, and corrected step by step by the largest statistic of all
    methods not yet found to be worse (Romano and Wolf 2005, J. Am. Stat. Assoc. 100). So the
    chance that any method is called worse although none is better is at most 5%, and the remaining
    methods contain the best with 95% confidence. Intervals hold for all pairs at once: Student's t
    with the critical value of the same random signs.

    Args:
        differences: [j, i] is the weighted sum of how much better i is than j, by cluster.
        masses: the weights of the prompts in which both are defined.
        best: the method whose lead the intervals bound.
    """
    clusters = differences.shape[-1]
    scaled = _scaled(differences)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(DRAWS, clusters))
    flipped = np.stack([(signs @ own.T).max(1) for own in scaled])
    p = _step_down(scaled.sum(-1).max(1), flipped)
    most = min(float(np.quantile(flipped.max(0), LEVEL, method="higher")) ** 2, clusters)
    critical = np.sqrt(most * (clusters - 1) / max(clusters - most, ROUNDING))
    ends = [
        _around(own, mass, critical)
        for own, mass in zip(differences[:, best], masses[:, best], strict=True)
    ]
    low, high = np.array(ends).T
    return p, (low, high)


def _scaled(
    differences: Float[np.ndarray, "methods methods clusters"],
) -> Float[np.ndarray, "methods methods clusters"]:
    """Differences over the root of their sum of squares; zero if they are only rounding."""
    exact = np.where(np.abs(differences) > ROUNDING, differences, 0.0)
    norms = np.sqrt((exact**2).sum(-1, keepdims=True))
    return np.asarray(exact / np.where(norms > 0, norms, 1.0))


def _step_down(
    observed: Float[np.ndarray, " methods"], flipped: Float[np.ndarray, "methods draws"]
) -> Float[np.ndarray, " methods"]:
    p, least = np.ones(len(observed)), 0.0
    left = list(np.argsort(-observed, kind="stable"))
    while left:
        largest = flipped[left].max(0)
        as_far = int((largest >= observed[left[0]] - ROUNDING).sum())
        least = max(least, (1 + as_far) / (1 + len(largest)))
        p[left.pop(0)] = least
    return p


def _around(
    sums: Float[np.ndarray, " clusters"], masses: Float[np.ndarray, " clusters"], critical: float
) -> tuple[float, float]:
    if not masses.any():
        return float("nan"), float("nan")
    mean = float(sums.sum() / masses.sum())
    error = standard_error(sums - mean * masses, masses.sum())
    if error < ROUNDING:
        return float("nan"), float("nan")
    return mean - critical * error, mean + critical * error


def optimism(sums: ByCluster, masses: ByCluster) -> float:
    """How far the highest of several means exceeds the same method's mean over all clusters.

    The average over bootstrap resamples of the clusters, where the highest method may differ (Efron
    and Tibshirani 1993, An Introduction to the Bootstrap, 17.6).

    Args:
        sums: as in `share_intervals`, higher is better.
        masses: as there.
    """
    clusters = sums.shape[1]
    chance = np.random.default_rng(0)
    counts = chance.multinomial(clusters, np.full(clusters, 1 / clusters), size=DRAWS)
    drawn = (counts @ sums.T) / np.maximum(counts @ masses.T, ROUNDING)
    highest = drawn.argmax(1)
    means = sums.sum(1) / masses.sum(1)
    return float((drawn.max(1) - means[highest]).mean())
