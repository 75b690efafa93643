"""Sums over random resamples of rows: the bootstrap, and random signs or orders for tests.

Each row is a unit that is drawn as a whole, such as a pair or a cluster. Draws depend only on the
number of rows, so all statistics of the same rows use the same resamples.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

ROUNDING = 1e-12
"""Relative difference that rounding can cause between two sums."""

_ROUNDING = 1e-9
"""Relative change that rounding can cause in a statistic."""

_DRAWN_AT_ONCE = 200
"""Number of resamples that are held in memory at a time as 64-bit numbers."""


def apart(a: float, b: float) -> float:
    """The difference a - b, exactly 0 if the two sums differ only by rounding."""
    return 0.0 if abs(a - b) <= ROUNDING * max(abs(a), abs(b)) else a - b


def bootstrap_sums(
    values: Float[np.ndarray, "rows columns"], *, resamples: int
) -> Float[np.ndarray, "resamples columns"]:
    """The sum of each column over each bootstrap resample of the rows."""
    return _products(bootstrap_counts(len(values), resamples), values)


def random_sign_sums(
    values: Float[np.ndarray, " rows"], *, resamples: int
) -> Float[np.ndarray, " resamples"]:
    """The sum of the values, each with a random sign."""
    return _products(random_signs(len(values), resamples), values[:, None])[:, 0]


def permutation_sums(
    values: Float[np.ndarray, " rows"],
    weights: Float[np.ndarray, "rows columns"],
    *,
    resamples: int,
) -> Float[np.ndarray, "resamples columns"]:
    """The sum of values times weights for each column, with the values in random order."""
    chance = np.random.default_rng(0)
    return _in_parts(
        lambda size: chance.permuted(np.tile(values, (size, 1)), axis=1) @ weights, resamples
    )


def share_as_far(
    resampled: Float[np.ndarray, " resamples"], observed: float, *, rounding: float = 0.0
) -> float:
    """The two-sided p-value of a permutation test around zero.

    p is the share of statistics at least as far from zero as the observed one, which is included,
    so p is never 0 (Phipson and Smyth, 2010, Stat. Appl. Genet. Mol. Biol. 9). Statistics up to
    `rounding` may be due to rounding alone; zero if true differences may be so small.
    """
    least = abs(observed) * (1 - _ROUNDING) - rounding
    as_far = int((np.abs(resampled) >= least).sum())
    return (1 + as_far) / (1 + len(resampled))


@lru_cache(maxsize=64)
def least_sign_p(rows: int, resamples: int) -> float:
    """The smallest p-value that a test by random signs of so many rows can give.

    With n rows, one random assignment in 2^(n-1) gives all of them the observed sign or all of them
    the other one, and its sum is as far from zero as the observed one, whatever the values. No such
    draw is to be expected of more than 64 rows.
    """
    if rows > 64:
        return 1 / (1 + resamples)
    same = np.abs(random_signs(rows, resamples).sum(axis=1)) == rows
    return (1 + int(same.sum())) / (1 + resamples)


def _products(
    weights: Int[np.ndarray, "resamples rows"], values: Float[np.ndarray, "rows columns"]
) -> Float[np.ndarray, "resamples columns"]:
    starts = range(0, len(weights), _DRAWN_AT_ONCE)
    parts = [weights[start : start + _DRAWN_AT_ONCE].astype(float) @ values for start in starts]
    return np.concatenate(parts)


@lru_cache(maxsize=4)
def bootstrap_counts(rows: int, resamples: int) -> Int[np.ndarray, "resamples rows"]:
    """How often each row is drawn in each resample."""
    chance, shares = np.random.default_rng(0), np.full(rows, 1 / rows)
    return _in_parts(
        lambda size: chance.multinomial(rows, shares, size=size).astype(np.int8), resamples
    )


@lru_cache(maxsize=4)
def random_signs(rows: int, resamples: int) -> Int[np.ndarray, "resamples rows"]:
    """1 or -1 for each row in each resample."""
    chance = np.random.default_rng(0)
    return _in_parts(
        lambda size: chance.choice([-1.0, 1.0], size=(size, rows)).astype(np.int8), resamples
    )


def _in_parts(draw: Callable[[int], np.ndarray], resamples: int) -> np.ndarray:
    """All draws, made in small batches to limit the memory for 64-bit numbers."""
    starts = range(0, resamples, _DRAWN_AT_ONCE)
    return np.concatenate([draw(min(_DRAWN_AT_ONCE, resamples - start)) for start in starts])
