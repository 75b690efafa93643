"""Correction of p-values for how many tests were made together."""

import pandas as pd
from statsmodels.stats.multitest import multipletests


def holm(table: pd.DataFrame, *, family: str, p: str = "p") -> pd.DataFrame:
    """The table with p_holm, family and family_size: its rows are one family of tests.

    p_holm is the p-value by Holm's step-down method (Holm, 1979), which bounds the chance of any
    false finding in the family. A row whose p-value is undefined was no test: it stays undefined
    and does not count in family_size.

    Args:
        table: one row a test.
        family: what the tests have in common, for the reader.
        p: the column of p-values.
    """
    defined = table[p].notna()
    corrected = pd.Series(float("nan"), index=table.index)
    if defined.any():
        corrected[defined] = multipletests(table.loc[defined, p], method="holm")[1]
    return table.assign(p_holm=corrected, family=family, family_size=int(defined.sum()))
