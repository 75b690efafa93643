"""Rank correlation: Spearman's rho, with an exact p-value for few rows."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from interp.analysis.groups import grouped
from interp.analysis.intervals import Z

MAX_EXACT = 8
"""Up to this many rows all permutations are counted: 40,320 for eight."""

ROUNDING = 1e-12
"""A correlation this close to 1 or -1 is perfect up to rounding."""


@dataclass(frozen=True)
class SpearmanTest:
    """Spearman's rho with its test; NaN where undefined, and then `note` says why."""

    rho: float
    """From -1 to 1; ties share their mean rank."""
    low: float
    """Lower end of the 95% interval, by Fisher's z with the variance of Bonett and Wright (2000,
    Psychometrika 65)."""
    high: float
    p: float
    """Two-sided p-value of no association."""
    n: int
    """Rows with both values."""
    method: str
    """How p was found: "exact permutation" up to eight rows, "t distribution" above."""
    note: str


def spearman(x: pd.Series, y: pd.Series) -> SpearmanTest:
    """Rank correlation of two columns, over the rows where both have a value.

    The exact p-value is the share of all n! orders of y whose |rho| is at least that observed,
    equal values counted as they are.
    """
    pairs = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    n = len(pairs)
    constant = [name for name, column in zip("xy", pairs.T, strict=True) if _is_constant(column)]
    if n < 3:
        return _undefined(n, f"undefined: {n} rows with both values, at least 3 needed")
    if constant:
        return _undefined(n, f"undefined: {' and '.join(constant)} constant")
    test = stats.spearmanr(*pairs.T)
    rho, p, method = float(test.statistic), float(test.pvalue), "t distribution"
    if n <= MAX_EXACT:
        p, method = _exact_p(*pairs.T), "exact permutation"
    low, high, note = _interval(rho, n)
    return SpearmanTest(rho=rho, low=low, high=high, p=p, n=n, method=method, note=note)


def spearman_table(
    frame: pd.DataFrame, *, pairs: Sequence[tuple[str, str]], by: Sequence[str] = ()
) -> pd.DataFrame:
    """One row for each group of rows and pair of columns.

    Columns are those of `by`, x and y (the columns' names) and the fields of SpearmanTest.

    Args:
        frame: one row per observation.
        pairs: names of the two columns to correlate, for each test.
        by: columns whose combinations of values are the groups; none takes all rows as one.
    """
    rows = [
        {**cell, "x": x, "y": y, **asdict(spearman(members[x], members[y]))}
        for cell, members in grouped(frame, by)
        for x, y in pairs
    ]
    return pd.DataFrame(rows, columns=[*by, "x", "y", *SpearmanTest.__dataclass_fields__])


def _undefined(n: int, note: str) -> SpearmanTest:
    nan = float("nan")
    return SpearmanTest(rho=nan, low=nan, high=nan, p=nan, n=n, method="", note=note)


def _is_constant(values: Float[np.ndarray, " n"]) -> bool:
    return len(np.unique(values)) < 2


def _exact_p(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """The share of all orders of y whose |rho| is at least that observed."""
    ranks = stats.rankdata(x) - (len(x) + 1) / 2

    def agreement(
        orders: Float[np.ndarray, "*orders n"], axis: int
    ) -> Float[np.ndarray, "*orders"]:
        """|rho| up to a factor that is the same for all orders."""
        return np.asarray(np.abs(np.moveaxis(orders, axis, -1) @ ranks))

    test = stats.permutation_test(
        (stats.rankdata(y),),
        agreement,
        permutation_type="pairings",
        alternative="greater",
        n_resamples=math.inf,
        vectorized=True,
    )
    return float(test.pvalue)


def _interval(rho: float, n: int) -> tuple[float, float, str]:
    if n < 4 or 1 - abs(rho) < ROUNDING:
        reason = "fewer than 4 rows" if n < 4 else "the ranks agree perfectly"
        return float("nan"), float("nan"), f"interval undefined: {reason}"
    half = Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), ""
