"""Welch's t-test of two means with Hedges' g, and Spearman's rank correlation."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from interp.statistics.clusters import NAN
from interp.statistics.decisions import agreeing
from interp.statistics.resampling import ROUNDING, permutation_sums, share_as_far
from interp.statistics.summaries import LEVEL, Z, grouped


@dataclass(frozen=True)
class WelchTest:
    """Two groups and their difference; undefined values are NaN, and `note` gives the reason."""

    n_a: int
    n_b: int
    mean_a: float
    mean_b: float
    sd_a: float
    """Sample standard deviation."""
    sd_b: float
    difference: float = NAN
    """mean_a - mean_b, in the units of the values."""
    low: float = NAN
    """Lower end of the difference's 95% interval (Welch)."""
    high: float = NAN
    t: float = NAN
    """Welch's t; positive if mean_a is larger."""
    df: float = NAN
    """Welch-Satterthwaite degrees of freedom."""
    p: float = NAN
    """Two-sided p-value."""
    g: float = NAN
    """Hedges' g: the difference divided by the pooled standard deviation, corrected for small
    samples; positive if mean_a is larger."""
    note: str = ""


def welch(a: pd.Series, b: pd.Series) -> WelchTest:
    """Welch's two-sided t-test of the difference between two means (Welch, 1947), and Hedges' g.

    Missing values are omitted. The test is undefined if a group has fewer than two members or if
    both groups are constant.
    """
    first, second = (values.dropna().to_numpy(dtype=float) for values in (a, b))
    mean_a, mean_b = (float(values.mean()) if len(values) else NAN for values in (first, second))
    sds = _sd(first), _sd(second)
    groups = WelchTest(len(first), len(second), mean_a, mean_b, *sds, difference=mean_a - mean_b)
    if note := _why_undefined(groups):
        return replace(groups, note=note)
    with warnings.catch_warnings():
        # If only one group is constant, the test is still defined, although scipy warns.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = stats.ttest_ind(first, second, equal_var=False)
    low, high = map(float, test.confidence_interval(LEVEL))
    t, df, p = float(test.statistic), float(test.df), float(test.pvalue)
    return replace(groups, low=low, high=high, t=t, df=df, p=p, g=_hedges(groups))


def _sd(values: Float[np.ndarray, " n"]) -> float:
    """The sample standard deviation; exactly zero for equal values, despite rounding."""
    if len(values) < 2:
        return NAN
    return float(values.std(ddof=1)) if np.ptp(values) else 0.0


def _why_undefined(groups: WelchTest) -> str:
    for few, fault in ((0, "empty"), (1, "has one member")):
        names = [name for name, n in (("a", groups.n_a), ("b", groups.n_b)) if n == few]
        if names:
            return f"undefined: group {' and '.join(names)} {fault}"
    return "undefined: both groups constant" if groups.sd_a == groups.sd_b == 0 else ""


def _hedges(groups: WelchTest) -> float:
    df = groups.n_a + groups.n_b - 2
    squares = groups.sd_a**2 * (groups.n_a - 1) + groups.sd_b**2 * (groups.n_b - 1)
    d = (groups.mean_a - groups.mean_b) / math.sqrt(squares / df)
    # Hedges (1981): the exact factor that makes d unbiased. Log-gammas avoid overflow.
    correction = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
    return correction * d


MAX_EXACT = 8
"""Largest number of rows for which all permutations are enumerated (40,320 for eight rows)."""

MAX_ORDERS = 5_000
"""Largest number of different orders of a column with ties that are enumerated for more rows."""

RESAMPLES = 9_999
"""Number of random orders if there are ties, but too many different orders."""


@dataclass(frozen=True)
class SpearmanTest:
    """Spearman's rho with its test; undefined values are NaN, and `note` gives the reason."""

    rho: float = NAN
    """From -1 to 1; tied values share their mean rank."""
    low: float = NAN
    """Lower end of the 95% interval, by Fisher's z with the variance of Bonett and Wright (2000,
    Psychometrika 65), or 0 if `method` does not reject it."""
    high: float = NAN
    p: float = NAN
    """Two-sided p-value for the null hypothesis of no association: the larger one of Fisher's z and
    of `method`, at most 0.05 if and only if the interval excludes 0."""
    n: int = 0
    """Number of rows with both values."""
    method: str = ""
    """How p was computed: "exact permutation" for up to eight rows or a column with few different
    orders, "random permutation" for other columns with ties, or otherwise "t distribution"."""
    note: str = ""


def spearman(x: pd.Series, y: pd.Series, *, tested: bool = True) -> SpearmanTest:
    """Rank correlation of two columns, over the rows with values in both.

    The exact p-value is the share of all n! orders of y whose |rho| is at least the observed |rho|;
    ties are kept. Ties make Student's t wrong: if 13 of 14 values of y are equal, rho has at most
    14 values. Computing p takes long for many rows with ties; `tested` says whether to.
    """
    pairs = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    n = len(pairs)
    if n < 3:
        return SpearmanTest(
            n=n, note=f"undefined: {n} rows with both values; at least 3 are needed"
        )
    constant = [name for name, axis in zip("xy", pairs.T, strict=True) if (axis == axis[0]).all()]
    if constant:
        return SpearmanTest(n=n, note=f"undefined: {' and '.join(constant)} constant")
    rho = float(stats.spearmanr(*pairs.T).statistic)
    p, method = _p_value(*pairs.T) if tested else (NAN, "")
    if n < 4 or 1 - abs(rho) < ROUNDING:
        reason = "fewer than 4 rows" if n < 4 else "the ranks agree perfectly"
        note = f"interval undefined: {reason}"
        return SpearmanTest(rho=rho, p=p, n=n, method=method, note=note)
    error, center = math.sqrt((1 + rho**2 / 2) / (n - 3)), math.atanh(rho)
    low, high = math.tanh(center - Z * error), math.tanh(center + Z * error)
    if tested:
        low, high, p = agreeing((low, high), 2 * float(stats.norm.sf(abs(center) / error)), p)
    return SpearmanTest(rho, low, high, p=p, n=n, method=method)


def spearman_table(
    frame: pd.DataFrame, *, pairs: Sequence[tuple[str, str]], by: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per group and pair: `by`, x and y (column names), and the fields of `SpearmanTest`.

    `pairs` names the two columns of each test; without `by`, all rows form one group.
    """
    rows = [
        {**cell, "x": x, "y": y, **asdict(spearman(members[x], members[y]))}
        for cell, members in grouped(frame, by)
        for x, y in pairs
    ]
    return pd.DataFrame(rows, columns=[*by, "x", "y", *SpearmanTest.__dataclass_fields__])


def _p_value(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> tuple[float, str]:
    """The p-value of a rank correlation, and how it was computed."""
    ranks, others = (stats.rankdata(values) - (len(x) + 1) / 2 for values in (x, y))
    # The column with fewer different orders is the one to be reordered.
    others, ranks = sorted((ranks, others), key=_log_orders)
    observed = float(ranks @ others)
    if len(x) <= MAX_EXACT or _log_orders(others) <= math.log(MAX_ORDERS):
        orders = permutations(others) if len(x) <= MAX_EXACT else _distinct_orders(others)
        # Sums of multiples of 1/4 are exact, so equal sums compare as equal.
        agreement = np.abs(np.array(list(orders)) @ ranks)
        return float((agreement >= abs(observed)).mean()), "exact permutation"
    if len(np.unique(others)) == len(others):
        return float(stats.spearmanr(x, y).pvalue), "t distribution"
    drawn = permutation_sums(others, ranks[:, None], resamples=RESAMPLES)[:, 0]
    return share_as_far(drawn, observed), "random permutation"


def least_rank_p(n: int) -> float:
    """The smallest p that an exact test of a rank correlation of so many rows can give.

    Of the n! orders, at least the observed one and its reverse have the same |rho|.
    """
    return 2 / math.factorial(n)


def _log_orders(values: Float[np.ndarray, " n"]) -> float:
    """The logarithm of the number of different orders of the values."""
    counts = np.unique(values, return_counts=True)[1]
    return math.lgamma(len(values) + 1) - sum(math.lgamma(count + 1) for count in counts)


def _distinct_orders(values: Float[np.ndarray, " n"]) -> Iterator[Float[np.ndarray, " n"]]:
    """All different orders of the values, in lexicographic order (Knuth's algorithm L)."""
    order = np.sort(values)
    while True:
        yield order.copy()
        rising = np.flatnonzero(order[:-1] < order[1:])
        if not len(rising):
            return
        first = rising[-1]
        other = np.flatnonzero(order > order[first])[-1]
        order[[first, other]] = order[[other, first]]
        order[first + 1 :] = order[first + 1 :][::-1].copy()
