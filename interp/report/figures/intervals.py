"""Estimates with their intervals, a row for each model: points alone, or above their clusters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from interp.report.figures.style import (
    QUIET,
    Interval,
    add_legend,
    distinct,
    house_style,
    interval_errors,
    jitter,
    look,
    new_axes,
    positions,
)
from interp.report.formatting import UNDEFINED, heading, number_text


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
    """Points with whiskers, a row for each value of `y` and in it a point for each of `hue`.

    Args:
        table: one row per point; the first row is drawn on top.
        x: column of the points; where it is empty, "undefined" is written.
        y: column of the rows, such as model.
        hue: column of the groups that are compared.
        n: column of the counts behind each point, written below the row's name, or one that all
            of a row have.
        interval: columns of whiskers.
        ax: where to draw; a new figure if None.
    """
    with house_style():
        names, groups = distinct(table[y]), distinct(table[hue])
        ax = ax or new_axes(height=0.62 * len(names) + 1.3)
        step = 0.5 / max(len(groups) - 1, 1)
        for index, group in enumerate(groups):
            rows = table[table[hue] == group]
            places = positions(rows[y], names) + (index - (len(groups) - 1) / 2) * step
            _whiskers(ax, rows, places, x=x, interval=interval, index=index, label=group)
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
        names, groups = distinct(means[y]), distinct(means[hue])
        ax = ax or new_axes(width=8.5, height=0.85 * len(names) + 1.3)
        step = 0.44 / max(len(groups) - 1, 1)
        largest = max(points[size].max(), 1) if len(points) else 1
        for index, group in enumerate(groups):
            shift, style = (index - (len(groups) - 1) / 2) * step, look(index)
            dots = points[points[hue] == group]
            ax.scatter(
                dots[x],
                positions(dots[y], names) + shift + jitter(len(dots), 0.16),
                s=6 + 60 * dots[size].astype(float) / largest,
                color=style.colour,
                marker=style.marker,
                alpha=0.3,
                linewidths=0,
            )
            rows = means[means[hue] == group]
            places = positions(rows[y], names) + shift
            _whiskers(ax, rows, places, x=x, interval=interval, index=index, label=group)
        for line in ax.lines:
            line.set(markeredgecolor="white", markeredgewidth=1.2, markersize=9)
        _name_rows(ax, means, names, y=y, n=n)
        ax.set_xlabel(heading(x))
        _write_p_values(ax, means.groupby(y)[p].first()[names].tolist())
        if len(groups) > 1:
            add_legend(ax, groups)
        return ax


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
        xerr=interval_errors(rows, values, interval),
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


def _name_rows(ax: Axes, table: pd.DataFrame, names: list[Any], *, y: str, n: str) -> None:
    """Rows from top to bottom, each with its name and its counts."""
    counts = [_counts(table.loc[table[y] == name, n]) for name in names]
    ax.set_yticks(range(len(names)), map("{}\nn = {}".format, names, counts))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, axis="x")
    ax.grid(visible=False, axis="y")


def _counts(counts: pd.Series) -> str:
    """The counts in the order of the groups, or the one that all of them have."""
    return ", ".join(f"{count:,}" for count in (counts[:1] if counts.nunique() == 1 else counts))


def _write_p_values(ax: Axes, values: Sequence[float]) -> None:
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
