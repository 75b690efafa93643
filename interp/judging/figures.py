"""The figures on the page of the faithfulness study."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.lines import heat_map
from interp.report.figures.points import interval_points, whiskers
from interp.report.figures.style import (
    QUIET,
    add_legend,
    distinct,
    house_style,
    mark_areas,
    n_of,
    new_axes,
)
from interp.report.glance import WIDTH


def methods_found(table: pd.DataFrame, *, kinds: Mapping[str, str]) -> Axes:
    """Plot how often each method finds the top segment: dots with intervals, best method first.

    Args:
        table: one row per contender, with the columns contender, kind, value, low, high, chance
            (a dashed line) and clusters.
        kinds: the label in the legend of each kind of contender.
    """
    with house_style():
        ax = new_axes(width=WIDTH, height=1.5 + 0.26 * len(table))
        table = table.sort_values("value", ascending=False, kind="stable")
        places = np.arange(len(table), dtype=float)
        for index, (kind, label) in enumerate(kinds.items()):
            own = (table["kind"] == kind).to_numpy()
            if not own.any():
                continue
            whiskers(
                ax,
                table[own],
                places[own],
                x="value",
                interval=("low", "high"),
                index=index,
                label=label,
                named=["contender"],
            )
        ax.axvline(float(table["chance"].iloc[0]), color=QUIET, linewidth=1, linestyle="--")
        ax.set_yticks(places, table["contender"])
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(f"top segment found ({n_of(table['clusters'])} clusters)")
        add_legend(ax, [label for kind, label in kinds.items() if (table["kind"] == kind).any()])
        return ax


def share_distances(table: pd.DataFrame) -> Axes:
    """Plot how far each method's shares lie from the exact shares.

    Args:
        table: one row per contender and model, with the columns contender, model, distance, low,
            high and prompts.
    """
    order = table.groupby("contender", sort=False)["distance"].mean().sort_values().index
    x = "mean distance from the exact share"
    rows = table.set_index("contender").loc[order].reset_index().rename(columns={"distance": x})
    models = len(distinct(rows["model"]))
    height = 1.2 + 0.2 * models + len(order) * max(0.42, 0.15 * models)
    return interval_points(
        rows,
        x=x,
        y="contender",
        hue="model",
        n="prompts",
        interval=("low", "high"),
        ax=new_axes(width=6.5, height=height),
    )


def methods_by_metrics(table: pd.DataFrame) -> Axes:
    """Draw a grid of values, with a row per contender and a column per metric.

    The table has the rows of one model, with the columns contender, metric, value and standing,
    which sets the color: 0 for a random order, 1 for the oracle.
    """
    rows, columns = (table[name].unique().tolist() for name in ("contender", "metric"))
    written, colors = (
        table.pivot(index="contender", columns="metric", values=name).loc[rows, columns].to_numpy()
        for name in ("value", "standing")
    )
    with house_style():
        ax = new_axes(width=3.2 + 0.72 * len(columns), height=1.6 + 0.27 * len(rows))
        label = "0: random order, 1: oracle"
        heat_map(ax, colors, label=label, shown=written, largest=1.0, shrink=0.7, extend="both")
        names = {"columns": columns, "rows": rows}
        mark_areas(ax, table, x="metric", y="contender", number="value", **names)
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xticks(range(len(columns)), [name.replace("_", "\n") for name in columns])
        ax.xaxis.tick_top()
        return ax
