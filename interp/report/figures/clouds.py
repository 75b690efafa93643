"""Many points without names."""

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.style import COUNTS, house_style, jitter, look, new_axes
from interp.report.formatting import UNDEFINED, heading

_MANY_POINTS = 400
"""From here on points hide each other, and their density is shown instead."""


def point_cloud(
    table: pd.DataFrame, *, x: str, y: str, size: str | None = None, ax: Axes | None = None
) -> Axes:
    """One point per row, such as an entity pair; a density of hexagons where there are many.

    Rows without a value are counted below the axis as undefined. The area of a point represents its
    `size`, such as the number of trials behind it; points are moved up or down at random, by up to
    0.02, so that those of the same place can be told apart.
    """
    with house_style():
        ax = ax or new_axes(width=6.0)
        points = table[[x, y]].dropna().astype(float)
        sizes = (
            table.loc[points.index, size].astype(float) if size else pd.Series(1.0, points.index)
        )
        if len(points) < _MANY_POINTS:
            ax.scatter(
                points[x],
                points[y] + jitter(len(points), 0.02),
                s=6 + 60 * sizes / sizes.max(),
                color=look(0).colour,
                alpha=0.45,
                linewidths=0,
            )
        else:
            cells = ax.hexbin(points[x], points[y], gridsize=24, mincnt=1, cmap=COUNTS)
            ax.figure.colorbar(cells, ax=ax, label="points", shrink=0.8)
        left_out = len(table) - len(points)
        remark = f"; {UNDEFINED}: {left_out:,}" if left_out else ""
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"{heading(x)} (n = {len(points):,}{remark})")
        ax.set_ylabel(heading(y))
        return ax
