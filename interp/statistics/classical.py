"""Welch's t-test of two means with Hedges' g, and Spearman's rank correlation."""

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from interp.statistics.resampling import ROUNDING
from interp.statistics.summaries import LEVEL, Z, grouped, table_by

NAN = float("nan")


@dataclass(frozen=True)
class WelchTest:
    """Two groups and their difference; NaN if undefined, and then `note` says why."""

    n_a: int
    n_b: int
    mean_a: float
    mean_b: float
    sd_a: float
    """Standard deviation of a sample."""
    sd_b: float
    difference: float = NAN
    """mean_a - mean_b, in the unit of the values."""
    low: float = NAN
    """Lower end of the difference's 95% interval (Welch)."""
    high: float = NAN
    t: float = NAN
    """Positive if a is larger."""
    df: float = NAN
    """Welch and Satterthwaite's degrees of freedom."""
    p: float = NAN
    """Two-sided."""
    g: float = NAN
    """Hedges' g: the difference in pooled standard deviations, corrected for small samples;
    positive if a is larger."""
    g_low: float = NAN
    """Lower end of g's 95% interval, by the large-sample variance of Hedges and Olkin (1985)."""
    g_high: float = NAN
    note: str = ""


def welch(a: pd.Series, b: pd.Series) -> WelchTest:
    """Welch's two-sided t-test of the difference of two means (Welch, 1947), and Hedges' g.

    Missing values are omitted. The test is undefined if a group is empty or has one member, or
    if both are constant.
    """
    first, second = _values(a), _values(b)
    groups = WelchTest(
        n_a=len(first),
        n_b=len(second),
        mean_a=_mean(first),
        mean_b=_mean(second),
        sd_a=_sd(first),
        sd_b=_sd(second),
    )
    note = _why_undefined(groups)
    if note:
        difference = groups.mean_a - groups.mean_b
        return WelchTest(**{**asdict(groups), "difference": difference, "note": note})
    test = {**asdict(groups), **_difference(first, second), **_effect(groups)}
    return WelchTest(**test)


def welch_table(
    frame: pd.DataFrame,
    *,
    value: str,
    group: str,
    groups: tuple[Hashable, Hashable],
) -> pd.DataFrame:
    """One row for each model: model, group_a, group_b and the fields of WelchTest.

    Args:
        frame: one row per observation, with its model.
        value: the column to compare.
        group: the column that says which group a row belongs to.
        groups: its two values, a and b; rows with others are omitted.
    """

    def compared(members: pd.DataFrame) -> WelchTest:
        return welch(*(members.loc[members[group] == name, value] for name in groups))

    names = dict(zip(("group_a", "group_b"), groups, strict=True))
    return table_by(frame, ["model"], WelchTest, compared, constant=names)


def _values(values: pd.Series) -> Float[np.ndarray, " n"]:
    numbers = np.asarray(values, dtype=float)
    return np.asarray(numbers[~np.isnan(numbers)])


def _mean(values: Float[np.ndarray, " n"]) -> float:
    return float(values.mean()) if len(values) else NAN


def _sd(values: Float[np.ndarray, " n"]) -> float:
    """The sample's standard deviation: exactly zero for equal values, despite rounding."""
    if len(values) < 2:
        return NAN
    return float(values.std(ddof=1)) if np.ptp(values) else 0.0


def _why_undefined(groups: WelchTest) -> str:
    sizes = {"a": groups.n_a, "b": groups.n_b}
    if 0 in sizes.values():
        empty = [name for name, n in sizes.items() if n == 0]
        return f"undefined: group {' and '.join(empty)} empty"
    if 1 in sizes.values():
        single = [name for name, n in sizes.items() if n == 1]
        return f"undefined: group {' and '.join(single)} has one member"
    if groups.sd_a == groups.sd_b == 0:
        return "undefined: both groups constant"
    return ""


def _difference(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]) -> dict[str, float]:
    with warnings.catch_warnings():
        # One group may be constant: the test is defined by the other, though scipy warns.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = stats.ttest_ind(a, b, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    return {
        "difference": float(a.mean() - b.mean()),
        "low": float(low),
        "high": float(high),
        "t": float(test.statistic),
        "df": float(test.df),
        "p": float(test.pvalue),
    }


def _effect(groups: WelchTest) -> dict[str, float]:
    n, df = groups.n_a + groups.n_b, groups.n_a + groups.n_b - 2
    squares = groups.sd_a**2 * (groups.n_a - 1) + groups.sd_b**2 * (groups.n_b - 1)
    d = (groups.mean_a - groups.mean_b) / math.sqrt(squares / df)
    # Hedges (1981): the exact factor that makes d unbiased, by log-gammas, which do not overflow.
    correction = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
    error = correction * math.sqrt(n / (groups.n_a * groups.n_b) + d**2 / (2 * n))
    half = Z * error
    g = correction * d
    return {"g": g, "g_low": g - half, "g_high": g + half}


MAX_EXACT = 8
"""Most rows for which all permutations are counted: 40,320 for eight."""


@dataclass(frozen=True)
class SpearmanTest:
    """Spearman's rho with its test; NaN if undefined, and then `note` says why."""

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

    The exact p-value is the share of all n! orders of y whose |rho| is at least the observed one;
    ties are kept.
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
    """The share of all orders of y whose |rho| is at least the observed one."""
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
