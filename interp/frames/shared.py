"""What all kinds of results share."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interp.errors import UserError, unknown


class Sized:
    """Results whose text names their tables and says how long each is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_sizes(self))})"


def _sizes(result: Any) -> Iterator[str]:
    """The tables of a result, each with its number of rows."""
    for field in fields(result):
        held = getattr(result, field.name)
        tables = held if isinstance(held, Mapping) else {field.name: held}
        for name, table in tables.items():
            if isinstance(table, pd.DataFrame):
                yield f"{name}: {len(table):,} rows"


def chosen(table: pd.DataFrame, name: str, value: str | int) -> pd.DataFrame:
    """The rows that have a value in a column.

    Raises:
        UserError: none has.
    """
    rows = table[table[name] == value]
    if rows.empty:
        known = [str(each) for each in table[name].dropna().unique()]
        raise UserError(unknown(name, str(value), known))
    return rows


def figure_of(axes: Axes) -> Figure:
    """The whole figure that axes are part of."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure
