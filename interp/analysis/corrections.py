"""Correction of p-values for multiple tests."""

import numpy as np
import pandas as pd


def holm(table: pd.DataFrame, *, family: str) -> pd.DataFrame:
    """The table with p_holm beside p, family and family_size: its rows are one family of tests.

    p_holm is the p-value by Holm's step-down method (Holm, 1979), which bounds the chance of any
    false finding in the family. A row whose p-value is undefined was no test: it stays undefined
    and does not count in family_size.

    Args:
        table: one row per test, with p.
        family: what the tests have in common, for the reader.
    """
    # statsmodels takes a second to import, which commands without a test need not wait for.
    from statsmodels.stats.multitest import multipletests

    values = table["p"].to_numpy(dtype=float)
    tested = ~np.isnan(values)
    corrected = np.full(len(table), np.nan)
    if tested.any():
        corrected[tested] = multipletests(values[tested], method="holm")[1]
    with_family = table.assign(family=family, family_size=int(tested.sum()))
    with_family.insert(list(with_family.columns).index("p") + 1, "p_holm", corrected)
    return with_family
