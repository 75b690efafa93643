"""The groups of a table's rows."""

from collections.abc import Iterator, Sequence

import pandas as pd


def grouped(
    frame: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Each combination of values of the columns `by`, in order of appearance, with its rows.

    No columns give one group of all rows.
    """
    if not by:
        yield {}, frame
        return
    for values, rows in frame.groupby(list(by), sort=False, observed=True, dropna=False):
        yield dict(zip(by, values, strict=True)), rows
