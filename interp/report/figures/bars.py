"""Clustered bars."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.style import (
    LETTER,
    QUIET,
    Interval,
    add_legend,
    annotate,
    distinct,
    house_style,
    interval_errors,
    look,
    mark,
    n_of,
    new_axes,
    positions,
    wrapped,
)
from interp.report.formatting import UNDEFINED, heading


def grouped_bars(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: Interval | None = None,
    groups: Sequence[object] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bars of `y`: one cluster per value of `x`, with one bar per value of `hue`.

    Values keep their order of appearance. An empty height is shown as "undefined"; counts `n` stand
    below each cluster. `groups` are all values of `hue` in the figure, if this panel may lack some.
    """
    with house_style():
        clusters, groups = distinct(table[x]), groups or distinct(table[hue])
        ax = ax or new_axes(width=min(max(6.0, 0.28 * len(clusters) * len(groups) + 2), 12.0))
        width = 0.82 / max(len(groups), 1)
        for index, group in enumerate(groups):
            rows, style = table[table[hue] == group], look(index)
            if rows.empty:
                continue
            places = positions(rows[x], clusters) + (index - (len(groups) - 1) / 2) * width
            heights = np.asarray(rows[y], dtype=np.float64)
            bars = ax.bar(
                places,
                np.nan_to_num(heights),
                width=width * 0.92,
                color=style.color,
                hatch=style.hatch,
                edgecolor="white",
                linewidth=0,
                label=str(group),
            )
            for at, (bar, row) in enumerate(zip(bars, rows.to_dict("records"), strict=True)):
                if not np.isnan(heights[at]):
                    mark(ax, bar, row, at=(index, at), number=y, named=[x, hue])
            if interval is not None:
                errors = interval_errors(rows, heights, interval)
                ax.errorbar(
                    places, heights, yerr=errors, fmt="none", ecolor="#1b1f24", elinewidth=1
                )
            upright = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 8}
            for place in places[np.isnan(heights)]:
                annotate(ax, UNDEFINED, (place, 0), (0, 3), color=QUIET, **upright)
        counts = [n_of(table.loc[table[x] == cluster, n]) for cluster in clusters]
        figure = ax.get_figure(root=True)
        assert figure is not None
        room = int(ax.get_position().width * figure.get_figwidth() / LETTER)
        letters = max(12, room // max(len(clusters), 1))
        names = [wrapped(cluster, letters) for cluster in clusters]
        labels = [f"{name}\n{count}" for name, count in zip(names, counts, strict=True)]
        ax.set_xticks(range(len(clusters)), labels)
        if sum(max(map(len, name.splitlines() or [""])) for name in names) > room:
            ax.tick_params(axis="x", labelrotation=90)
        ax.tick_params(axis="x", length=0)
        ax.set_ylabel(heading(y))
        add_legend(ax, groups)
        return ax
