"""Figures from tables in long form: each takes `ax`, returns the axes and states n."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from interp.report.formatting import UNDEFINED, number_text
from interp.report.style import COUNTS, QUIET, house_style, look, new_axes

Interval = tuple[str, str]
"""The columns that hold the lower and the upper end of an interval."""

PANELS_A_ROW = 3

_MANY_POINTS = 400
"""From here on points hide each other, and their density is shown instead."""

_LABEL_GAP = 13.0
"""Least distance between the labels of two points, in typographic points."""

_LETTER = 5.5
"""About the width of a letter of such a label, in typographic points."""


def grouped_bars(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: Interval | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bars of `y`, a cluster for each value of `x` and in it a bar for each value of `hue`.

    Args:
        table: one row per bar; values keep the order in which they first occur.
        x: column of the clusters.
        y: column of the heights; where it is empty, "undefined" is written.
        hue: column of the bars within a cluster.
        n: column of the counts behind each bar, written below each cluster.
        interval: columns of whiskers.
        ax: where to draw; a new figure if None.
    """
    with house_style():
        clusters, groups = _order(table[x]), _order(table[hue])
        ax = ax or new_axes(width=min(max(6.0, 0.28 * len(clusters) * len(groups) + 2), 12.0))
        width = 0.82 / max(len(groups), 1)
        for index, group in enumerate(groups):
            rows = table[table[hue] == group]
            places = _places(rows[x], clusters) + (index - (len(groups) - 1) / 2) * width
            _bars(ax, rows, places, y=y, interval=interval, width=width, index=index, label=group)
        counts = [_n(table.loc[table[x] == cluster, n]) for cluster in clusters]
        labels = [f"{cluster}\n{count}" for cluster, count in zip(clusters, counts, strict=True)]
        ax.set_xticks(range(len(clusters)), labels)
        ax.tick_params(axis="x", length=0)
        ax.set_ylabel(_words(y))
        _legend(ax, groups)
        return ax


def interval_points(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    n: str,
    interval: Interval,
    p: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Points with whiskers, a row for each value of `y` and in it a point for each of `hue`.

    Args:
        table: one row per point; the first row is drawn on top.
        x: column of the points; where it is empty, "undefined" is written.
        y: column of the rows, such as model.
        hue: column of the groups that are compared.
        n: column of the counts behind each point, written below the row's name.
        interval: columns of whiskers.
        p: column of the comparison's p-value, the same in all rows of one `y`.
        ax: where to draw; a new figure if None.
    """
    with house_style():
        names, groups = _order(table[y]), _order(table[hue])
        ax = ax or new_axes(height=0.62 * len(names) + 1.3)
        step = 0.5 / max(len(groups) - 1, 1)
        for index, group in enumerate(groups):
            rows = table[table[hue] == group]
            places = _places(rows[y], names) + (index - (len(groups) - 1) / 2) * step
            _whiskers(ax, rows, places, x=x, interval=interval, index=index, label=group)
        counts = [", ".join(f"{count:,}" for count in table.loc[table[y] == v, n]) for v in names]
        ax.set_yticks(range(len(names)), map("{}\nn = {}".format, names, counts))
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(_words(x))
        if p is not None:
            _p_values(ax, table.groupby(y)[p].first()[names].tolist())
        _legend(ax, groups)
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
    ax: Axes | None = None,
) -> Axes:
    """A dot for each cluster, and their mean with its interval, a row for each value of `y`.

    Args:
        points: one row per dot: x, y, hue and size.
        means: one row per mean: x, y, hue, n, its interval and p.
        x: column of the dots and means; where a mean is empty, "undefined" is written.
        y: column of the rows, such as model.
        hue: column of the groups that are compared.
        size: column of the number of trials behind each dot, which its area represents.
        n: column of the number of clusters behind each mean, written below the row's name.
        interval: columns of the means' whiskers.
        p: column of the comparison's p-value, the same in all rows of one `y`.
        ax: where to draw; a new figure if None.
    """
    with house_style():
        names, groups = _order(means[y]), _order(means[hue])
        ax = ax or new_axes(width=8.5, height=0.85 * len(names) + 1.3)
        step = 0.44 / max(len(groups) - 1, 1)
        largest = max(points[size].max(), 1) if len(points) else 1
        for index, group in enumerate(groups):
            shift, style = (index - (len(groups) - 1) / 2) * step, look(index)
            dots = points[points[hue] == group]
            ax.scatter(
                dots[x],
                _places(dots[y], names) + shift + _jitter(len(dots), 0.16),
                s=6 + 60 * dots[size].astype(float) / largest,
                color=style.colour,
                marker=style.marker,
                alpha=0.3,
                linewidths=0,
            )
            rows = means[means[hue] == group]
            places = _places(rows[y], names) + shift
            _whiskers(ax, rows, places, x=x, interval=interval, index=index, label=group)
        for line in ax.lines:
            line.set(markeredgecolor="white", markeredgewidth=1.2, markersize=9)
        counts = [", ".join(f"{count:,}" for count in means.loc[means[y] == v, n]) for v in names]
        ax.set_yticks(range(len(names)), map("{}\nn = {}".format, names, counts))
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(_words(x))
        _p_values(ax, means.groupby(y)[p].first()[names].tolist())
        if len(groups) > 1:
            _legend(ax, groups)
        return ax


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
        groups = _order(table[hue])
        for index, group in enumerate(groups):
            rows = table[table[hue] == group].sort_values(x)
            _line(ax, rows, x=x, y=y, interval=interval, index=index, label=group)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"{_words(x)} ({_n(table[n])})")
        ax.set_ylabel(_words(y))
        _legend(ax, groups)
        return ax


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
        columns, rows = _order(table[x]), _order(table[y])
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
        ax.set_xlabel(f"{_words(value)} by {_words(x)} ({_n(table[n])})")
        return ax


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
            ax.plot(across, up, linestyle="", marker=look(index).marker, color=look(index).colour)
        across, up = (
            None if ends is None else _errors(points, points[name].to_numpy(dtype=float), ends)
            for name, ends in ((x, x_interval), (y, y_interval))
        )
        ax.errorbar(
            points[x], points[y], xerr=across, yerr=up, fmt="none", ecolor=QUIET, elinewidth=1
        )
        ax.margins(0.12)
        _point_labels(ax, points, x=x, y=y, label=label)
        remark = f"\n{UNDEFINED}: {', '.join(undefined)}" if undefined else ""
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"{_words(x)} (n = {len(points)}){remark}")
        ax.set_ylabel(_words(y))
        return ax


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
                points[y] + _jitter(len(points), 0.02),
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
        ax.set_xlabel(f"{_words(x)} (n = {len(points):,}{remark})")
        ax.set_ylabel(_words(y))
        return ax


def panel_a_model(
    table: pd.DataFrame,
    draw: Callable[[pd.DataFrame, Axes], Axes],
    *,
    share_x: bool = True,
    handles: Sequence[Artist] | None = None,
) -> Axes:
    """A new figure with a panel for each model and one legend; returns its first axes.

    Without any rows it says that there is nothing to draw.

    Args:
        table: rows with a column model.
        draw: draws the rows of one model.
        share_x: whether the panels have one scale across; they always have one up.
        handles: entries of the legend; those of the first panel's own if None.
    """
    models = _order(table["model"])
    columns = max(1, min(PANELS_A_ROW, len(models)))
    rows = max(1, -(-len(models) // columns))
    with house_style():
        figure = Figure(figsize=(3.6 * columns, 3.0 * rows + 0.5))
        panels = figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=True)
        for model, ax in zip(models, panels.flat, strict=False):
            draw(table[table["model"] == model], ax)
            ax.set_title(str(model), fontsize=10)
            if ax not in panels[:, 0]:
                ax.set_ylabel("")
            legend = ax.get_legend()
            if legend is not None:
                handles = handles or ax.get_legend_handles_labels()[0]
                legend.remove()
        for ax in panels.flat[len(models) :]:
            ax.set_axis_off()
        if not len(models):
            figure.text(0.5, 0.5, UNDEFINED, ha="center")
        if handles:
            figure.legend(handles=handles, loc="outside upper left", ncols=columns)
    return figure.axes[0]


def _bars(
    ax: Axes,
    rows: pd.DataFrame,
    places: NDArray[np.float64],
    *,
    y: str,
    interval: Interval | None,
    width: float,
    index: int,
    label: object,
) -> None:
    heights, style = np.asarray(rows[y], dtype=np.float64), look(index)
    ax.bar(
        places,
        np.nan_to_num(heights),
        width=width * 0.92,
        color=style.colour,
        hatch=style.hatch,
        edgecolor="white",
        linewidth=0,
        label=str(label),
    )
    if interval is not None:
        errors = _errors(rows, heights, interval)
        ax.errorbar(places, heights, yerr=errors, fmt="none", ecolor="#1b1f24", elinewidth=1)
    for place in places[np.isnan(heights)]:
        ax.annotate(
            UNDEFINED,
            (place, 0),
            xytext=(0, 3),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="bottom",
            color=QUIET,
            fontsize=8,
        )


def _whiskers(
    ax: Axes,
    rows: pd.DataFrame,
    places: NDArray[np.float64],
    *,
    x: str,
    interval: Interval,
    index: int,
    label: object,
) -> None:
    values, style = np.asarray(rows[x], dtype=np.float64), look(index)
    ax.errorbar(
        values,
        places,
        xerr=_errors(rows, values, interval),
        fmt=style.marker,
        color=style.colour,
        elinewidth=1.6,
        label=str(label),
    )
    for place in places[np.isnan(values)]:
        ax.annotate(
            f"{label}: {UNDEFINED}",
            (0, place),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=QUIET,
            fontsize=8,
        )


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


def _errors(
    rows: pd.DataFrame, values: NDArray[np.float64], interval: Interval
) -> NDArray[np.float64]:
    """Distances from the values down and up to the ends of their intervals, (2, row)."""
    low, high = (rows[column].astype(float).to_numpy() for column in interval)
    return np.maximum([values - low, high - values], 0.0)


def _jitter(points: int, reach: float) -> NDArray[np.float64]:
    """Random shifts, the same in every run."""
    return np.random.default_rng(0).uniform(-reach, reach, points)


def _p_values(ax: Axes, values: Sequence[float]) -> None:
    for place, value in enumerate(values):
        text = number_text(value, p_value=True)
        p = f"p {text}" if text.startswith("<") else f"p = {text}"
        ax.annotate(
            "not tested" if np.isnan(value) else p,
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )


def _point_labels(ax: Axes, points: pd.DataFrame, *, x: str, y: str, label: str) -> None:
    """Names to the right of their points, moved off other names and off other points."""
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
            xytext=(ahead[hidden].max(initial=0.0) + 9, place - up[index]),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
            arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.6, "relpos": (0, 0.5)},
        )


def _size(ax: Axes) -> tuple[float, float]:
    """About the width and height of the axes, in typographic points, before they are laid out."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    box = ax.get_position()
    return 72 * figure.get_figwidth() * box.width, 72 * figure.get_figheight() * box.height


def _legend(ax: Axes, groups: Sequence[object]) -> None:
    """A legend above the axes, in as many columns as its names leave room for."""
    if not groups:
        return
    longest = max(len(str(group)) for group in groups)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        borderaxespad=0,
        ncols=max(1, min(len(groups), 90 // (longest + 7))),
        handlelength=2,
    )


def _order(values: pd.Series) -> list[Any]:
    return values.drop_duplicates().tolist()


def _places(values: pd.Series, order: list[Any]) -> NDArray[np.float64]:
    return np.array([order.index(value) for value in values], dtype=float)


def _n(counts: pd.Series) -> str:
    if counts.empty:
        return "n = 0"
    low, high = int(counts.min()), int(counts.max())
    return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


def _words(name: str) -> str:
    return name.replace("_", " ")
