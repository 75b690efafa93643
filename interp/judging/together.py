"""Simultaneous intervals and tests for all methods on a model, and thus also for the best method.

The unit is the cluster of prompts. Every prompt has its own donors, so variation between donors is
part of the variation between clusters.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, stdtrit

from interp.statistics.resampling import bootstrap_counts
from interp.statistics.summaries import LEVEL

DRAWS = 9999
"""Number of random weights of each cluster."""

ADDED = 0.5
"""Mean weight of the cluster that is added to a share (`interp.statistics.proportions`)."""

ROUNDING = 1e-9

ByCluster = Float[np.ndarray, "methods clusters"]
Ends = tuple[Float[np.ndarray, " methods"], Float[np.ndarray, " methods"]]


def share_intervals(sums: ByCluster, masses: ByCluster) -> Ends:
    """Simultaneous 95% intervals, for all methods, of weighted means of values between 0 and 1.

    They are bounds of Gaffke (2005), with half an added cluster, as in
    `interp.statistics.proportions`. In 5% of the random reweightings of the clusters, the same for
    all methods, some value lies outside its interval (Beran 1988, J. Am. Stat. Assoc. 83). `sums`
    are weighted sums over the prompts of each cluster, and `masses` the sums of the weights.
    """
    chance = np.random.default_rng(0)
    weights = chance.standard_exponential((DRAWS, sums.shape[1]))
    extra = np.outer(chance.gamma(ADDED, size=DRAWS), (masses**2).sum(1) / masses.sum(1))
    drawn, mass = weights @ sums.T, weights @ masses.T + extra
    low, high = drawn / mass, (drawn + extra) / mass
    # Each draw's most extreme rank, over both ends and all methods.
    outermost = np.minimum(_ranks(low).min(1), _ranks(-high).min(1))
    place = int(np.quantile(outermost, 1 - LEVEL))
    lower, upper = (np.partition(ends, place, axis=0)[place] for ends in (low, -high))
    return lower, -upper


def _ranks(draws: Float[np.ndarray, "draws methods"]) -> Int[np.ndarray, "draws methods"]:
    """Number of other draws below or equal to each draw; ties are never extreme."""
    ranks = np.empty(draws.shape, dtype=int)
    for method, column in enumerate(np.round(draws, 12).T):
        _, group, sizes = np.unique(column, return_inverse=True, return_counts=True)
        ranks[:, method] = np.cumsum(sizes)[group] - 1
    return ranks


def normal_intervals(
    values: Float[np.ndarray, " methods"],
    draws: Float[np.ndarray, "draws methods"],
    clusters: int,
) -> Ends:
    """Simultaneous 95% intervals, for all methods, of unbounded values.

    The half-width is the bootstrap's standard deviation times the 95% quantile of the largest
    deviation over all methods, taken from a normal to Student's t distribution with clusters - 1
    degrees of freedom. NaN if a value or most of its draws are undefined.
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
    *,
    most: float,
) -> tuple[Float[np.ndarray, " methods"], Ends]:
    """p-values (for "no other method is better"), and intervals for the lead of the best method.

    Each ordered pair of methods has a lower bound on the lead of the second over the first: the
    bound of Gaffke (2005), with half an added cluster in which the first leads by as much as
    possible. A method is worse if the bound on another's lead over it is above zero. 5% of the
    random weights violate at least one bound (Beran 1988), with a step-down correction for the
    methods not yet called worse (Romano and Wolf 2005, J. Am. Stat. Assoc. 100), so the others
    include the best with 95% confidence. Intervals hold simultaneously for all pairs.

    Differences may be skewed: a test by random signs of clusters, which assumes symmetric ones,
    wrongly calls a method worse in up to 18% of simulated studies.

    Args:
        differences: [j, i] is the weighted sum of the lead of i over j, by cluster.
        masses: [j, i] is the weight of the prompts in which i and j are defined, by cluster.
        best: the method whose lead the intervals bound.
        most: the largest possible difference in a prompt.
    """
    chance = np.random.default_rng(0)
    weights = chance.standard_exponential((DRAWS, differences.shape[-1]))
    added = chance.gamma(ADDED, size=DRAWS)
    ahead = [_ahead(weights, added, *pair, most) for pair in zip(differences, masses, strict=True)]
    others = (np.delete(_ranks(draws), itself, axis=1) for itself, draws in enumerate(ahead))
    ranks = np.stack([other.min(1) for other in others])
    below = np.array([(draws <= ROUNDING).sum(0).min() for draws in ahead])
    place = int(np.quantile(ranks.min(0), 1 - LEVEL))
    leads = np.stack([draws[:, best] for draws in ahead], 1), ahead[best]
    low, high = (np.partition(ends, place, axis=0)[place] for ends in leads)
    alike = ~(np.abs(differences[best]) > ROUNDING).any(-1)
    ends = np.where(alike, np.nan, low), np.where(alike, np.nan, -high)
    return _step_down(below, ranks), ends


def _ahead(
    weights: Float[np.ndarray, "draws clusters"],
    added: Float[np.ndarray, " draws"],
    differences: ByCluster,
    masses: ByCluster,
    most: float,
) -> Float[np.ndarray, "draws methods"]:
    """Draws of the lower bounds on each method's lead over a given method."""
    total = np.maximum(masses.sum(1), ROUNDING)
    extra = np.outer(added, (masses**2).sum(1) / total)
    mass = np.maximum(weights @ masses.T + extra, ROUNDING)
    return np.asarray((weights @ differences.T - most * extra) / mass)


def _step_down(
    below: Int[np.ndarray, " methods"], ranks: Int[np.ndarray, "methods draws"]
) -> Float[np.ndarray, " methods"]:
    """p-values, from the number of negative draws of each method's bound and the draws' ranks."""
    p, least = np.ones(len(below)), 0.0
    left = list(np.argsort(below, kind="stable"))
    while left:
        as_far = int((ranks[left].min(0) < below[left[0]]).sum())
        least = max(least, (1 + as_far) / (1 + ranks.shape[1]))
        p[left.pop(0)] = least
    return p


def optimism(sums: ByCluster, masses: ByCluster) -> float:
    """The selection bias of the highest of several means, from sums and masses by cluster.

    Its excess over the same method's mean, averaged over bootstrap resamples of the clusters, each
    with its own highest method (Efron and Tibshirani 1993, An Introduction to the Bootstrap, 17.6).
    """
    counts = bootstrap_counts(sums.shape[1], DRAWS)
    drawn = (counts @ sums.T) / np.maximum(counts @ masses.T, ROUNDING)
    highest = drawn.argmax(1)
    means = sums.sum(1) / masses.sum(1)
    return float((drawn.max(1) - means[highest]).mean())
