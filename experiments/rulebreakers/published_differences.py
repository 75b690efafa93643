"""Measured values next to published ones."""

from collections.abc import Sequence

import pandas as pd


def published_difference(
    measured: pd.DataFrame, published: pd.DataFrame, *, key: str, columns: Sequence[str]
) -> pd.DataFrame:
    """One row for each row that both tables have and each column to compare.

    Columns are `key`, quantity (the column's name), measured, published, and difference: measured
    minus published, in the column's own unit, undefined where either is. A column that
    a table lacks is undefined there.

    Args:
        measured: one row for each value of `key`.
        published: likewise.
        key: the column that names a row in both, such as "model".
        columns: the columns to compare.
    """
    long = (
        table.reindex(columns=[key, *columns])
        .assign(order=range(len(table)))
        .melt(id_vars=[key, "order"], var_name="quantity", value_name=name)
        for table, name in ((measured, "measured"), (published, "published"))
    )
    ours, theirs = long
    both = ours.merge(
        theirs.drop(columns="order"), on=[key, "quantity"], validate="one_to_one", sort=False
    )
    both = both.sort_values("order", kind="stable", ignore_index=True).drop(columns="order")
    values = both[["measured", "published"]].astype(float)
    return both.assign(**values, difference=values["measured"] - values["published"])
