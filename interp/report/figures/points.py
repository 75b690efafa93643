"""Figures made of points: named points, estimates with intervals, means above clusters."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from interp.errors import shortened
from interp.report.figures.style import (
    QUIET,
    Interval,
    add_legend,
    annotate,
    distinct,
    house_style,
    interval_errors,
    look,
    mark_points,
    new_axes,
    positions,
    row_height,
    wrapped,
)
from interp.report.formatting import UNDEFINED, heading, number_text

_MANY_POINTS = 400
"""Above this number, dots lead to no pairs: they would hide the means."""


def _mark_dots(
    ax: Axes, rows: pd.DataFrame, across: Iterable[float], up: Iterable[float], **how: Any
) -> None:
    """Mark dots, which are told apart by all texts of their rows; many would hide the means."""
    if len(rows) <= _MANY_POINTS:
        texts = [str(name) for name in rows if all(isinstance(one, str) for one in rows[name])]
        mark_points(ax, rows, list(zip(across, up, strict=True)), named=texts, **how)


_LONGEST = 40
"""Maximum number of letters of the name of a point without a value."""


def labeled_points(table: pd.DataFrame, *, x: str, y: str, label: str) -> Axes:
    """One point per row of the table, such as a model, which the legend names.

    Rows without a value are named below the axis as undefined.
    """
    with house_style():
        ax = new_axes()
        shown = table[[x, y]].notna().all(axis="columns")
        points, undefined = table[shown], table.loc[~shown, label].astype(str).tolist()
        places = list(zip(points[x].astype(float), points[y].astype(float), strict=True))
        for index, ((across, up), name) in enumerate(zip(places, points[label], strict=True)):
            style = look(index)
            how: dict[str, Any] = {"marker": style.marker, "color": style.color}
            ax.plot([across], [up], linestyle="", label=str(name), **how)
        mark_points(ax, points, places, series=0, number=y, named=[label])
        ax.margins(0.12)
        who = f"{len(undefined):,} of {len(table):,}"
        if len(undefined) <= 8:
            who = ", ".join(shortened(name, _LONGEST) for name in undefined)
        remark = f"\n{textwrap.fill(f'{UNDEFINED}: {who}', 80)}" if undefined else ""
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"{heading(x)} (n = {len(points)}){remark}")
        ax.set_ylabel(heading(y))
        add_legend(ax, points[label].tolist())
        return ax


def interval_points(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: Interval,
    ax: Axes | None = None,
) -> Axes:
    """Points with whiskers: one row per value of `y`, with one point per value of `hue`.

    The first row is drawn on top. An empty value is written as "undefined"; counts `n` stand below
    the row's name, once if all are equal.
    """
    with house_style():
        names, groups = distinct(table[y]), distinct(table[hue])
        ax = ax or new_axes(height=row_height(names, 0.62) * len(names) + 1.3)
        step = 0.5 / max(len(groups) - 1, 1)
        for index, group in enumerate(groups):
            rows = table[table[hue] == group]
            places = positions(rows[y], names) + (index - (len(groups) - 1) / 2) * step
            how: dict[str, Any] = {"x": x, "interval": interval, "named": [y, hue]}
            whiskers(ax, rows, places, index=index, label=group, **how)
        _name_rows(ax, table, names, y=y, n=n)
        ax.set_xlabel(heading(x))
        add_legend(ax, groups)
        return ax


def cluster_points(
    points: pd.DataFrame,
    means: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    size: str,
    n: str,
    interval: Interval,
    p: str,
) -> Axes:
    """A dot for each cluster, and the mean of the dots with its interval; one row per value of `y`.

    Dots have the area of `size`, their number of trials, and means the number `n` of their
    clusters. An empty mean is shown as "undefined"; p is the comparison's, the same in all rows of
    one `y`.
    """
    with house_style():
        names, groups = distinct(means[y]), distinct(means[hue])
        ax = new_axes(width=8.5, height=row_height(names, 0.85) * len(names) + 1.3)
        step = 0.44 / max(len(groups) - 1, 1)
        largest = max(points[size].max(), 1) if len(points) else 1
        for index, group in enumerate(groups):
            shift, style = (index - (len(groups) - 1) / 2) * step, look(index)
            dots = points[points[hue] == group]
            # Random shifts that are identical in every run.
            apart = np.random.default_rng(0).uniform(-0.16, 0.16, len(dots))
            heights = positions(dots[y], names) + shift + apart
            _mark_dots(ax, dots, dots[x], heights, series=len(groups) + index, number=x)
            ax.scatter(
                dots[x],
                heights,
                s=6 + 60 * dots[size].astype(float) / largest,
                color=style.color,
                marker=style.marker,
                alpha=0.3,
                linewidths=0,
            )
            rows = means[means[hue] == group]
            places = positions(rows[y], names) + shift
            how: dict[str, Any] = {"x": x, "interval": interval, "named": [y, hue]}
            whiskers(ax, rows, places, index=index, label=group, **how)
        for line in ax.lines:
            line.set(markeredgecolor="white", markeredgewidth=1.2, markersize=9)
        _name_rows(ax, means, names, y=y, n=n)
        ax.set_xlabel(heading(x))
        for place, value in enumerate(means.groupby(y)[p].first()[names]):
            text = number_text(value, p_value=True)
            said = f"p {text}" if text.startswith("<") else f"p = {text}"
            said = "not tested" if np.isnan(value) else said
            annotate(ax, said, (1, place), (6, 0), xycoords=_AT_EDGE, va="center", fontsize=9)
        if len(groups) > 1:
            add_legend(ax, groups)
        return ax


_AT_EDGE = "axes fraction", "data"
"""Coordinates of a string next to a row, at the left or right edge."""


def whiskers(
    ax: Axes,
    rows: pd.DataFrame,
    places: NDArray[np.float64],
    *,
    x: str,
    interval: Interval,
    index: int,
    label: object,
    named: Sequence[str],
) -> None:
    """Points with whiskers at places from top to bottom, in the look of a group."""
    values, style = np.asarray(rows[x], dtype=np.float64), look(index)
    ax.errorbar(
        values,
        places,
        xerr=interval_errors(rows, values, interval),
        fmt=style.marker,
        color=style.color,
        elinewidth=1.6,
        label=str(label),
    )
    points = list(zip(values, places, strict=True))
    mark_points(ax, rows, points, series=index, number=x, named=named)
    small = {"va": "center", "color": QUIET, "fontsize": 8}
    for place in places[np.isnan(values)]:
        annotate(ax, f"{label}: {UNDEFINED}", (0, place), (4, 0), xycoords=_AT_EDGE, **small)


def _name_rows(ax: Axes, table: pd.DataFrame, names: list[Any], *, y: str, n: str) -> None:
    """Rows from top to bottom, each with its name and its counts, in the order of the groups."""
    labels = []
    for name in names:
        counts = table.loc[table[y] == name, n]
        shown = counts[:1] if counts.nunique() == 1 else counts
        labels.append(f"{wrapped(name)}\nn = {', '.join(f'{count:,}' for count in shown)}")
    ax.set_yticks(range(len(names)), labels)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, axis="x")
    ax.grid(visible=False, axis="y")
