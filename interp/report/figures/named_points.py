"""Points with their names next to them, moved apart where they would overlap."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.style import (
    QUIET,
    Interval,
    house_style,
    interval_errors,
    look,
    new_axes,
)
from interp.report.formatting import UNDEFINED, heading

_LABEL_GAP = 13.0
"""Least distance between the labels of two points, in typographic points."""

_LIFT = 9.0
"""How far a name is above a whisker to the right, in typographic points."""

_LETTER = 5.5
"""About the width of a letter of such a label, in typographic points."""


def labelled_points(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    label: str,
    x_interval: Interval | None = None,
    y_interval: Interval | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One point per row, such as a model, with its name next to it; for up to about ten rows.

    Rows without a value are named below the axis as undefined. `x_interval` and `y_interval` are
    columns of whiskers.
    """
    with house_style():
        ax = ax or new_axes()
        shown = table[[x, y]].notna().all(axis="columns")
        points, undefined = table[shown], table.loc[~shown, label].astype(str).tolist()
        for index, (across, up) in enumerate(zip(points[x], points[y], strict=True)):
            style = look(index)
            # Above the boxes of the names.
            ax.plot(across, up, linestyle="", marker=style.marker, color=style.colour, zorder=4)
        across, up = (
            None
            if ends is None
            else interval_errors(points, points[name].to_numpy(dtype=float), ends)
            for name, ends in ((x, x_interval), (y, y_interval))
        )
        ax.errorbar(
            points[x], points[y], xerr=across, yerr=up, fmt="none", ecolor=QUIET, elinewidth=1
        )
        ax.margins(0.12)
        lift = 0.0 if x_interval is None else _LIFT
        _point_labels(ax, points, x=x, y=y, label=label, lift=lift)
        remark = f"\n{UNDEFINED}: {', '.join(undefined)}" if undefined else ""
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"{heading(x)} (n = {len(points)}){remark}")
        ax.set_ylabel(heading(y))
        return ax


def _point_labels(
    ax: Axes, points: pd.DataFrame, *, x: str, y: str, label: str, lift: float
) -> None:
    """Names to the right of their points, moved up, and off other names and other points."""
    points = points.sort_values(y)
    names = points[label].astype(str).tolist()
    width, height = _size(ax)
    room = min(max(map(len, names), default=0) * _LETTER / width, 0.7)
    left, right = ax.get_xlim()
    right = left + (right - left) / (1 - room)
    ax.set_xlim(left, right)
    bottom, top = ax.get_ylim()
    across = (points[x].to_numpy(float) - left) / (right - left) * width
    up = (points[y].to_numpy(float) - bottom) / (top - bottom) * height
    free = -np.inf
    for index, name in enumerate(names):
        place = max(up[index], free)
        free = place + _LABEL_GAP
        ahead = across - across[index]
        hidden = (np.abs(up - place) < _LABEL_GAP) & (ahead >= 0) & (ahead < len(name) * _LETTER)
        ax.annotate(
            name,
            (points[x].iloc[index], points[y].iloc[index]),
            xytext=(ahead[hidden].max(initial=0.0) + 9, place - up[index] + lift),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
            arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.6, "relpos": (0, 0.5)},
        )


def _size(ax: Axes) -> tuple[float, float]:
    """The width and height of the axes as they are laid out, in typographic points."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    return 72 * box.width / figure.dpi, 72 * box.height / figure.dpi
