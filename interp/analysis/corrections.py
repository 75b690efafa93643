"""Correction of p-values for how many tests were made together."""

import numpy as np
import pandas as pd


def holm(table: pd.DataFrame, *, family: str, p: str = "p") -> pd.DataFrame:
    """The table with p_holm beside p, family and family_size: its rows are one family of tests.

    p_holm is the p-value by Holm's step-down method (Holm, 1979), which bounds the chance of any
    false finding in the family: the k-th smallest of m is multiplied by m - k + 1, and none is
    smaller than the one before. A row whose p-value is undefined was no test: it stays undefined
    and does not count in family_size.

    Args:
        table: one row a test.
        family: what the tests have in common, for the reader.
        p: the column of p-values.
    """
    ordered = table[p].dropna().sort_values()
    size = len(ordered)
    corrected = (ordered * np.arange(size, 0, -1)).cummax().clip(upper=1.0)
    told = table.assign(family=family, family_size=size)
    told.insert(list(told.columns).index(p) + 1, "p_holm", corrected)
    return told
