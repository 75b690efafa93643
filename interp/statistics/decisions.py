"""Holm's correction, limits and verdicts: which differences are shown, and which are excluded.

Limits are those of two one-sided tests, each at 5% (Schuirmann, 1987, Journal of Pharmacokinetics
and Biopharmaceutics 15): one excludes all differences below the lower end of the 90% interval; the
other, all those above its upper end. They are not corrected for the number of comparisons.
"""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from interp.console import counted

LEAST, HOLM_LEAST = "p_least", "p_holm_least"
"""Columns of the smallest p, and the smallest p_holm, that a test can give."""


def holm(table: pd.DataFrame, *, family: str) -> pd.DataFrame:
    """Add p_holm (after p), family and family_size to a table whose rows are one family of tests.

    p_holm is the p-value by Holm's step-down method (Holm, 1979), which bounds the probability of
    any false positive in the family. A row with an undefined p-value has no p_holm and does not
    count towards family_size.

    If the table has a column p_least, p_holm_least stands before it: the smallest p_holm that any
    test of the family could have had, whatever the data (`out_of_reach`). The rows of `table` have
    p and, if known, p_least: the smallest p that the test can give with as many clusters and
    resamples.
    """
    values = table["p"].to_numpy(dtype=float)
    tests = int(np.isfinite(values).sum())
    # The `multipletests` of statsmodels collects garbage at each call, which dominates its run
    # time.
    order = np.argsort(values)[:tests]
    corrected = np.full(len(table), np.nan)
    steps = np.maximum.accumulate(values[order] * np.arange(tests, 0, -1))
    corrected[order] = np.minimum(steps, 1)
    table = table.assign(family=family, family_size=tests)
    table.insert(list(table.columns).index("p") + 1, "p_holm", corrected)
    if LEAST in table:
        of_tests = table[LEAST].to_numpy(dtype=float)[order]
        least = min(tests * of_tests.min(), 1.0) if tests else np.nan
        place = list(table.columns).index(LEAST)
        table.insert(place, HOLM_LEAST, np.where(np.isfinite(values), least, np.nan))
    return table


def corrected_over(families: Iterable[pd.DataFrame]) -> str:
    """Over how much p_holm is corrected, such as "2 tests of 2 models"."""
    tested = [family[family["p_holm"].notna()] for family in families]
    sizes = [int(tests.filter(regex=r"^p_holm(_chance)?$").count().sum()) for tests in tested]
    models = max((tests["model"].nunique() for tests in tested), default=0)
    unique = sorted({size for size in sizes if size})
    if not unique:
        return "no test"
    text = f"{unique[0]:,} to {unique[-1]:,} tests" if unique[1:] else counted(unique[0], "test")
    return f"{text} of {counted(models, 'model')}"


def out_of_reach(table: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows of a corrected table no effect, however large, could have made significant."""
    if HOLM_LEAST not in table:
        return pd.Series(False, table.index)
    return table[HOLM_LEAST] >= SIGNIFICANT


def most_tests(least: float) -> int:
    """The largest family of tests of which one can be significant, given the smallest p."""
    return math.ceil(SIGNIFICANT / least) - 1


def reach_in_words(table: pd.DataFrame) -> str:
    """A sentence about the rows that could not be significant; empty if there are none."""
    out = out_of_reach(table)
    if not out.any():
        return ""
    tested = int(table[HOLM_LEAST].notna().sum())
    rows = "none of these tests" if out.sum() == tested else f"{out.sum():,} of {tested:,} tests"
    could = "could" if out.sum() == tested else "could not"
    least = table.loc[out, HOLM_LEAST]
    ends = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (least.min(), least.max())))
    return (
        f"Whatever the effects, {rows} {could} be significant: the smallest possible p_holm "
        f"({HOLM_LEAST}) is {ends}, because clusters, or resamples, are too few for so many tests. "
        "That nothing is significant here says nothing about effects; see their intervals, make "
        "fewer tests, or measure more clusters."
    )


SMALLEST = 0.1
"""The smallest difference in accuracy that is of interest: one question, or pair, in ten.

It is half the difference that a study of the default size detects with 80% power. It is also
smaller than the differences from which a paper on minimal pairs draws conclusions: the paired
accuracies of its models range from 0.10 to 0.61, and phrasings differ by more than 0.4.
"""

SIGNIFICANT = 0.05
"""A difference is shown if p, corrected for multiple comparisons, is below this level."""

ONE_SIDED = 0.95
"""Level of each limit; the two limits are the ends of a 90% interval."""

DIFFERENT, SMALLER, OPEN, UNTESTED = "different", "smaller", "open", "not tested"
"""The four verdicts: a difference is shown; none is shown, and differences of interest are
excluded; differences are neither shown nor excluded; nothing is tested.
"""


def agreeing(ends: tuple[float, float], p: float, other: float) -> tuple[float, float, float]:
    """Both ends and p of two tests together: at most 0.05 if and only if the ends exclude 0.

    `ends` and `p` are those of one method, and `other` is the p of another test against 0. The
    larger p counts, and the interval reaches to 0 if the other test does not reject it.
    """
    low, high = ends
    if other > SIGNIFICANT:
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high, max(p, other)


def verdict(p: float, below: float, above: float) -> str:
    """`DIFFERENT`, `SMALLER` than the smallest difference of interest, `OPEN`, or `UNTESTED`.

    p is two-sided, corrected if there are several comparisons; the limits are those of one-sided
    tests.
    """
    if np.isnan(p):
        return UNTESTED
    if p < SIGNIFICANT:
        return DIFFERENT
    return SMALLER if below > -SMALLEST and above < SMALLEST else OPEN


def verdicts(table: pd.DataFrame, *, p: str = "p_holm") -> list[str]:
    """The verdict on each row, from the columns p, excluded_below and excluded_above."""
    columns = [p, "excluded_below", "excluded_above"]
    return [verdict(*row) for row in table[columns].to_numpy(dtype=float)]
