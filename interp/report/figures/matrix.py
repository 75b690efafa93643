"""A grid of shares."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.style import Interval, distinct, house_style, n_of, new_axes
from interp.report.formatting import heading, number_text


def matrix(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    value: str,
    n: str,
    interval: Interval | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A grid of shares from 0 to 1, each written in its cell, above its interval.

    Args:
        table: one row per cell; rows and columns keep the order in which they first occur.
        x: column of the grid's columns.
        y: column of the grid's rows.
        value: column of the shares; where it is empty, the cell is blank.
        n: column of the counts behind each cell.
        interval: columns of the intervals.
        ax: where to draw; a new figure if None.
    """
    with house_style():
        columns, rows = distinct(table[x]), distinct(table[y])
        grid = table.pivot(index=y, columns=x, values=value).loc[rows, columns].astype(float)
        ends = [
            table.pivot(index=y, columns=x, values=end).loc[rows, columns].to_numpy(dtype=float)
            for end in interval or ()
        ]
        ax = ax or new_axes(width=2.6 + 0.8 * len(columns), height=1.4 + 0.5 * len(rows))
        ax.imshow(grid, cmap="cividis", vmin=0, vmax=1, aspect="auto")
        for (down, across), share in np.ndenumerate(grid.to_numpy()):
            if not np.isnan(share):
                # Light ink on the dark half of the colour map.
                ink = "white" if share < 0.55 else "black"
                text = number_text(share)
                if ends and not np.isnan(ends[0][down, across]):
                    text += "\n" + " to ".join(f"{end[down, across]:.2f}" for end in ends)
                ax.text(across, down, text, ha="center", va="center", color=ink, fontsize=7)
        ax.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.set_xlabel(f"{heading(value)} by {heading(x)} ({n_of(table[n])})")
        return ax
