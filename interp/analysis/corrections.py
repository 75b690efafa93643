"""Correction of p-values for multiple tests."""

import numpy as np
import pandas as pd


def holm(table: pd.DataFrame, *, family: str, p: str = "p") -> pd.DataFrame:
    """The table with p_holm beside p, family and family_size: its rows are one family of tests.

    p_holm is the p-value by Holm's step-down method (Holm, 1979), which bounds the chance of any
    false finding in the family. A row whose p-value is undefined was no test: it stays undefined
    and does not count in family_size. (statsmodels' `multipletests` collects Python's garbage at
    every call, which takes 0.3 s after a study: two thirds of the time that all tests of a report
    take.)

    Args:
        table: one row per test.
        family: what the tests have in common, for the reader.
        p: the column of p-values.
    """
    values = table[p].to_numpy(dtype=float)
    size = int((~np.isnan(values)).sum())
    order = np.argsort(values)[:size]  # undefined values come last
    corrected = np.full(len(table), np.nan)
    steps = np.maximum.accumulate(values[order] * np.arange(size, 0, -1))
    corrected[order] = np.minimum(steps, 1.0)
    with_family = table.assign(family=family, family_size=size)
    with_family.insert(list(with_family.columns).index(p) + 1, "p_holm", corrected)
    return with_family
