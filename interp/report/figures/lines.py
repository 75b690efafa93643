"""Lines with bands, for example over layers, and grids of shares or differences."""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.ticker import MaxNLocator

from interp.report.figures import style
from interp.report.formatting import heading, number_text


def lines(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: style.Interval | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A line of `y` over `x` for each value of `hue`, with its interval as a band.

    An empty value leaves a gap in the line; `n` is the column of the counts for each point.
    """
    with style.house_style():
        ax = ax or style.new_axes()
        groups = style.distinct(table[hue])
        for index, group in enumerate(groups):
            rows, form = table[table[hue] == group].sort_values(x), style.look(index)
            if interval is not None:
                low, high = (rows[column].astype(float) for column in interval)
                ax.fill_between(rows[x], low, high, color=form.color, alpha=0.15, linewidth=0)
            ax.plot(
                rows[x],
                rows[y].astype(float),
                color=form.color,
                linestyle=form.line,
                marker=form.marker,
                markersize=4.5,
                label=str(group),
            )
            places = list(zip(rows[x], rows[y].astype(float), strict=True))
            style.mark_points(ax, rows, places, series=-index, number=y, named=[x, hue])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"{heading(x)} ({style.n_of(table[n])})")
        ax.set_ylabel(heading(y))
        style.add_legend(ax, groups)
        return ax


def heat_map(
    ax: Axes,
    values: Float[np.ndarray, "row column"],
    *,
    label: str,
    shown: Float[np.ndarray, "row column"] | None = None,
    quiet: Bool[np.ndarray, "row column"] | None = None,
    largest: float | None = None,
    shrink: float = 0.9,
    extend: str = "neither",
) -> None:
    """Draw a grid of cells colored around zero, gray if missing or quiet, with a color bar.

    Numbers in `shown` are written into the cells. `largest` is the size of the darkest color, by
    default that of the largest number; beyond the ends in `extend` (as Matplotlib names them) there
    are numbers.
    """
    ax.grid(visible=False)
    ax.tick_params(length=0)
    if not values.size:
        return
    largest = largest or float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    colored = values if quiet is None else np.where(quiet, np.nan, values)
    ax.set_facecolor(style.PALE)
    image = ax.imshow(
        np.ma.masked_invalid(colored),
        cmap=style.DIVERGING,
        norm=TwoSlopeNorm(0, -largest, largest),
        aspect="auto",
    )
    ax.figure.colorbar(image, ax=ax, label=label, shrink=shrink, pad=0.02, extend=extend)
    if shown is None:
        return
    for (row, column), value in np.ndenumerate(shown):
        ink = "w" if np.nan_to_num(abs(colored[row, column])) > 0.6 * largest else "k"
        # + 0.0 turns -0.0 into 0.0.
        text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−") if np.isfinite(value) else ""
        ax.text(column, row, text, ha="center", va="center", fontsize=8, color=ink)


def matrix(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    value: str,
    n: str,
    interval: style.Interval | None = None,
) -> Axes:
    """A grid of shares from 0 to 1, each shown in its cell above its interval, if columns are few.

    Rows and columns keep their order of appearance; the cell for an empty share is blank.
    """
    with style.house_style():
        columns, rows = style.distinct(table[x]), style.distinct(table[y])
        grid, *ends = (
            table.pivot(index=y, columns=x, values=name).loc[rows, columns].to_numpy(dtype=float)
            for name in (value, *(interval or ()))
        )
        width, few = 2.6 + 0.8 * len(columns), len(columns) <= _COLUMNS
        ax = style.new_axes(width=width if few else 12.0, height=1.4 + 0.5 * len(rows))
        image = ax.imshow(grid, cmap="cividis", vmin=0, vmax=1, aspect="auto")
        if not few:
            ax.figure.colorbar(image, ax=ax, label=heading(value), pad=0.02)
        for (down, across), share in np.ndenumerate(grid):
            if few and not np.isnan(share):
                # Use light ink on the dark half of the color map.
                ink = "white" if share < 0.55 else "black"
                text = number_text(share)
                if ends and not np.isnan(ends[0][down, across]):
                    text += "\n" + " to ".join(f"{end[down, across]:.2f}" for end in ends)
                ax.text(across, down, text, ha="center", va="center", color=ink, fontsize=7)
        style.mark_areas(ax, table, x=x, y=y, number=value, columns=columns, rows=rows)
        ax.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.set_xlabel(f"{heading(value)} by {heading(x)} ({style.n_of(table[n])})")
        return ax


_COLUMNS = 16
"""Largest number of columns for which each cell shows its number."""
