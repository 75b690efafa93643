"""Named points, estimates with intervals, means above clusters, and clustered bars."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from interp.errors import shortened
from interp.report.figures import style
from interp.report.formatting import UNDEFINED, heading, number_text

_MANY_POINTS = 400
"""Above this number, dots lead to no pairs: they would hide the means."""


_LONGEST = 40
"""Maximum number of letters of the name of a point without a value."""


def labeled_points(table: pd.DataFrame, *, x: str, y: str, label: str) -> Axes:
    """One point per row, named in the legend or, without a value, as undefined below the axis."""
    with style.house_style():
        ax = style.new_axes()
        shown = table[[x, y]].notna().all(axis="columns")
        points, undefined = table[shown], table.loc[~shown, label].astype(str).tolist()
        places = list(zip(points[x].astype(float), points[y].astype(float), strict=True))
        for index, ((across, up), name) in enumerate(zip(places, points[label], strict=True)):
            form = style.look(index)
            how: dict[str, Any] = {"marker": form.marker, "color": form.color}
            ax.plot([across], [up], linestyle="", label=str(name), **how)
        style.mark_points(ax, points, places, series=0, number=y, named=[label])
        ax.margins(0.12)
        who = f"{len(undefined):,} of {len(table):,}"
        if len(undefined) <= 8:
            who = ", ".join(shortened(name, _LONGEST) for name in undefined)
        remark = f"\n{textwrap.fill(f'{UNDEFINED}: {who}', 80)}" if undefined else ""
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"{heading(x)} (n = {len(points)}){remark}")
        ax.set_ylabel(heading(y))
        style.add_legend(ax, points[label].tolist())
        return ax


def interval_points(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: style.Interval,
    ax: Axes | None = None,
) -> Axes:
    """Points with whiskers: one row per value of `y`, with one point per value of `hue`.

    The first row is drawn on top. An empty value is written as "undefined"; counts `n` stand below
    the row's name, once if all are equal.
    """
    with style.house_style():
        names, groups = style.distinct(table[y]), style.distinct(table[hue])
        ax = ax or style.new_axes(height=style.row_height(names, 0.62) * len(names) + 1.3)
        step = 0.5 / max(len(groups) - 1, 1)
        for index, group in enumerate(groups):
            rows = table[table[hue] == group]
            places = style.positions(rows[y], names) + (index - (len(groups) - 1) / 2) * step
            how: dict[str, Any] = {"x": x, "interval": interval, "named": [y, hue]}
            whiskers(ax, rows, places, index=index, label=group, **how)
        _name_rows(ax, table, names, y=y, n=n)
        ax.set_xlabel(heading(x))
        style.add_legend(ax, groups)
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
    interval: style.Interval,
    p: str,
) -> Axes:
    """A dot for each cluster, and the mean of the dots with its interval; one row per value of `y`.

    Dots have the area of `size`, their number of trials, and means the number `n` of their
    clusters. An empty mean is shown as "undefined"; p is the comparison's, the same in all rows of
    one `y`.
    """
    with style.house_style():
        names, groups = style.distinct(means[y]), style.distinct(means[hue])
        ax = style.new_axes(width=8.5, height=style.row_height(names, 0.85) * len(names) + 1.3)
        step = 0.44 / max(len(groups) - 1, 1)
        largest = max(points[size].max(), 1) if len(points) else 1
        for index, group in enumerate(groups):
            shift, form = (index - (len(groups) - 1) / 2) * step, style.look(index)
            dots = points[points[hue] == group]
            # Random shifts that are identical in every run.
            apart = np.random.default_rng(0).uniform(-0.16, 0.16, len(dots))
            heights = style.positions(dots[y], names) + shift + apart
            if len(dots) <= _MANY_POINTS:
                at, series = list(zip(dots[x], heights, strict=True)), len(groups) + index
                texts = [str(n) for n in dots if all(isinstance(one, str) for one in dots[n])]
                style.mark_points(ax, dots, at, series=series, number=x, named=texts)
            ax.scatter(
                dots[x],
                heights,
                s=6 + 60 * dots[size].astype(float) / largest,
                color=form.color,
                marker=form.marker,
                alpha=0.3,
                linewidths=0,
            )
            rows = means[means[hue] == group]
            places = style.positions(rows[y], names) + shift
            how: dict[str, Any] = {"x": x, "interval": interval, "named": [y, hue]}
            whiskers(ax, rows, places, index=index, label=group, **how)
        for line in ax.lines:
            line.set(markeredgecolor="white", markeredgewidth=1.2, markersize=9)
        _name_rows(ax, means, names, y=y, n=n)
        ax.set_xlabel(heading(x))
        for place, value in enumerate(means.groupby(y)[p].first()[names]):
            text = number_text(value, p_value=True)
            note = f"p {text}" if text.startswith("<") else f"p = {text}"
            note = "not tested" if np.isnan(value) else note
            style.annotate(ax, note, (1, place), (6, 0), xycoords=_AT_EDGE, va="center", fontsize=9)
        if len(groups) > 1:
            style.add_legend(ax, groups)
        return ax


_AT_EDGE = "axes fraction", "data"
"""Coordinates of a string next to a row, at the left or right edge."""


def whiskers(
    ax: Axes,
    rows: pd.DataFrame,
    places: NDArray[np.float64],
    *,
    x: str,
    interval: style.Interval,
    index: int,
    label: object,
    named: Sequence[str],
) -> None:
    """Points with whiskers at places from top to bottom, in the look of a group."""
    values, form = np.asarray(rows[x], dtype=np.float64), style.look(index)
    ax.errorbar(
        values,
        places,
        xerr=style.interval_errors(rows, values, interval),
        fmt=form.marker,
        color=form.color,
        elinewidth=1.6,
        label=str(label),
    )
    points = list(zip(values, places, strict=True))
    style.mark_points(ax, rows, points, series=index, number=x, named=named)
    small = {"va": "center", "color": style.QUIET, "fontsize": 8}
    for place in places[np.isnan(values)]:
        style.annotate(ax, f"{label}: {UNDEFINED}", (0, place), (4, 0), xycoords=_AT_EDGE, **small)


def _name_rows(ax: Axes, table: pd.DataFrame, names: list[Any], *, y: str, n: str) -> None:
    """Rows from top to bottom, each with its name and its counts, in the order of the groups."""
    labels = []
    for name in names:
        counts = table.loc[table[y] == name, n]
        shown = counts[:1] if counts.nunique() == 1 else counts
        labels.append(f"{style.wrapped(name)}\nn = {', '.join(f'{count:,}' for count in shown)}")
    ax.set_yticks(range(len(names)), labels)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, axis="x")
    ax.grid(visible=False, axis="y")


def grouped_bars(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: style.Interval | None = None,
    groups: Sequence[object] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bars of `y`: one cluster per value of `x`, with one bar per value of `hue`.

    Values keep their order of appearance. An empty height is shown as "undefined"; counts `n` stand
    below each cluster. `groups` are all values of `hue` in the figure, if this panel may lack some.
    """
    with style.house_style():
        clusters, groups = style.distinct(table[x]), groups or style.distinct(table[hue])
        ax = ax or style.new_axes(width=min(max(6.0, 0.28 * len(clusters) * len(groups) + 2), 12.0))
        width = 0.82 / max(len(groups), 1)
        for index, group in enumerate(groups):
            rows, form = table[table[hue] == group], style.look(index)
            if rows.empty:
                continue
            places = style.positions(rows[x], clusters) + (index - (len(groups) - 1) / 2) * width
            heights = np.asarray(rows[y], dtype=np.float64)
            bars = ax.bar(
                places,
                np.nan_to_num(heights),
                width=width * 0.92,
                color=form.color,
                hatch=form.hatch,
                edgecolor="white",
                linewidth=0,
                label=str(group),
            )
            for at, (bar, row) in enumerate(zip(bars, rows.to_dict("records"), strict=True)):
                if not np.isnan(heights[at]):
                    style.mark(ax, bar, row, at=(index, at), number=y, named=[x, hue])
            if interval is not None:
                errors = style.interval_errors(rows, heights, interval)
                ax.errorbar(
                    places, heights, yerr=errors, fmt="none", ecolor="#1b1f24", elinewidth=1
                )
            upright = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 8}
            for place in places[np.isnan(heights)]:
                style.annotate(ax, UNDEFINED, (place, 0), (0, 3), color=style.QUIET, **upright)
        counts = [style.n_of(table.loc[table[x] == cluster, n]) for cluster in clusters]
        figure = ax.get_figure(root=True)
        assert figure is not None
        room = int(ax.get_position().width * figure.get_figwidth() / style.LETTER)
        letters = max(12, room // max(len(clusters), 1))
        names = [style.wrapped(cluster, letters) for cluster in clusters]
        labels = [f"{name}\n{count}" for name, count in zip(names, counts, strict=True)]
        ax.set_xticks(range(len(clusters)), labels)
        if sum(max(map(len, name.splitlines() or [""])) for name in names) > room:
            ax.tick_params(axis="x", labelrotation=90)
        ax.tick_params(axis="x", length=0)
        ax.set_ylabel(heading(y))
        style.add_legend(ax, groups)
        return ax
