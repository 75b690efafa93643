"""Two groups compared by Welch's t-test, with an effect size."""

import math
import warnings
from collections.abc import Hashable
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from interp.analysis.groups import table_by
from interp.analysis.intervals import LEVEL, Z

NAN = float("nan")


@dataclass(frozen=True)
class WelchTest:
    """Two groups and their difference; NaN where undefined, and then `note` says why."""

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
    """Positive where a is larger."""
    df: float = NAN
    """Welch and Satterthwaite's degrees of freedom."""
    p: float = NAN
    """Two-sided."""
    g: float = NAN
    """Hedges' g: the difference in pooled standard deviations, corrected for small samples;
    positive where a is larger."""
    g_low: float = NAN
    """Lower end of g's 95% interval, by the large-sample variance of Hedges and Olkin (1985)."""
    g_high: float = NAN
    note: str = ""


def welch(a: pd.Series, b: pd.Series) -> WelchTest:
    """Welch's two-sided t-test of the difference of two means (Welch, 1947), and Hedges' g.

    Missing values are left out. The test is undefined where a group is empty or has one member, or
    where both are constant.
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
        value: the column that is compared.
        group: the column that says which group a row belongs to.
        groups: its two values, a and b; rows with others are left out.
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
    """The sample's standard deviation: exactly zero for equal values, whatever their rounding."""
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
