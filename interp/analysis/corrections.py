"""Correction of p-values for multiple tests."""

import numpy as np
import pandas as pd
from jaxtyping import Float


def holm(table: pd.DataFrame, *, family: str, p: str = "p") -> pd.DataFrame:
    """The table with p_holm beside p, family and family_size: its rows are one family of tests.

    p_holm is the p-value by Holm's step-down method (Holm, 1979), which bounds the chance of any
    false finding in the family. A row whose p-value is undefined was no test: it stays undefined
    and does not count in family_size.

    Args:
        table: one row per test.
        family: what the tests have in common, for the reader.
        p: the column of p-values.
    """
    values = table[p].to_numpy(dtype=float)
    tested = ~np.isnan(values)
    corrected = np.full(len(table), np.nan)
    if tested.any():
        corrected[tested] = _step_down(values[tested])
    with_family = table.assign(family=family, family_size=int(tested.sum()))
    with_family.insert(list(with_family.columns).index(p) + 1, "p_holm", corrected)
    return with_family


def _step_down(p: Float[np.ndarray, " tests"]) -> Float[np.ndarray, " tests"]:
    """Holm's adjusted p-values, in the order of p.

    Not statsmodels' `multipletests`, which collects Python's garbage at every call: 0.2 s each in a
    report, and a second to import.
    """
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
