"""The groups of a table's rows, and tables of what is computed of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any

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


def table_by(
    frame: pd.DataFrame,
    by: Sequence[str],
    kind: type[Any],
    of: Callable[[pd.DataFrame], Any],
    *,
    constant: Mapping[str, object] = MappingProxyType({}),
) -> pd.DataFrame:
    """One row for each combination of `by`: by, the constant columns, the fields of a dataclass.

    Args:
        frame: what is grouped.
        by: the columns whose combinations have a row each.
        kind: the dataclass, whose fields are columns even where there is no row.
        of: computes an object of it from the rows of a combination.
        constant: columns of one value each.
    """
    rows = [{**cell, **constant, **asdict(of(members))} for cell, members in grouped(frame, by)]
    return pd.DataFrame(rows, columns=[*by, *constant, *(field.name for field in fields(kind))])
