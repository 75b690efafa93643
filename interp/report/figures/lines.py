"""Lines with a band, such as over layers."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.report.figures.style import (
    Interval,
    add_legend,
    distinct,
    house_style,
    look,
    n_of,
    new_axes,
)
from interp.report.formatting import heading


def lines(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: Interval | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A line of `y` over `x` for each value of `hue`, with the interval as a band.

    Args:
        table: one row per point, such as a layer.
        x: column of numbers.
        y: column of the values; a line has a gap where it is empty.
        hue: column of the lines.
        n: column of the counts behind each point.
        interval: columns of the band.
        ax: where to draw; a new figure if None.
    """
    with house_style():
        ax = ax or new_axes()
        groups = distinct(table[hue])
        for index, group in enumerate(groups):
            rows = table[table[hue] == group].sort_values(x)
            _line(ax, rows, x=x, y=y, interval=interval, index=index, label=group)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"{heading(x)} ({n_of(table[n])})")
        ax.set_ylabel(heading(y))
        add_legend(ax, groups)
        return ax


def _line(
    ax: Axes,
    rows: pd.DataFrame,
    *,
    x: str,
    y: str,
    interval: Interval | None,
    index: int,
    label: object,
) -> None:
    style = look(index)
    if interval is not None:
        low, high = (rows[column].astype(float) for column in interval)
        ax.fill_between(rows[x], low, high, color=style.colour, alpha=0.15, linewidth=0)
    ax.plot(
        rows[x],
        rows[y].astype(float),
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markersize=4.5,
        label=str(label),
    )
