"""Figures of faithfulness: methods by metrics, and shares by each method against the exact ones."""

import math

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from interp.report.figures.style import DIVERGING, PALE, QUIET, house_style, look, new_axes
from interp.report.formatting import number_text

PANELS_A_ROW = 4


def methods_by_metrics(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A cell for each contender and metric: its value, coloured from a random order to the oracle.

    Args:
        table: rows of one model: contender, metric, value, standing (0 of a random order, 1 of the
            oracle).
        ax: where to draw; a new figure if None.
    """
    rows, columns = table["contender"].unique(), table["metric"].unique()
    shown, standing = (
        table.pivot(index="contender", columns="metric", values=name).loc[rows, columns]
        for name in ("value", "standing")
    )
    with house_style():
        ax = ax or new_axes(width=3.2 + 0.72 * len(columns), height=1.6 + 0.27 * len(rows))
        ax.grid(visible=False)
        ax.tick_params(length=0)
        ax.set_facecolor(PALE)
        image = ax.imshow(
            np.ma.masked_invalid(standing.to_numpy(float)),
            cmap=DIVERGING,
            norm=TwoSlopeNorm(0, -1, 1),
            aspect="auto",
        )
        ax.figure.colorbar(
            image, ax=ax, shrink=0.7, pad=0.02, label="0: random order, 1: oracle", extend="both"
        )
        _write(ax, shown.to_numpy(float), standing.to_numpy(float))
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_xticks(range(len(columns)), [str(name).replace("_", "\n") for name in columns])
        ax.xaxis.tick_top()
        return ax


def _write(
    ax: Axes,
    values: Float[np.ndarray, "contender metric"],
    standing: Float[np.ndarray, "contender metric"],
) -> None:
    """Each value into its cell."""
    for (row, column), value in np.ndenumerate(values):
        dark = np.nan_to_num(abs(standing[row, column])) > 0.6
        text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−") if np.isfinite(value) else ""
        colour = "w" if dark else "k"
        ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def shares_by_method(table: pd.DataFrame) -> Axes:
    """A panel for each contender: the share of a segment that it gives each prompt, and the exact.

    Args:
        table: contender, model, share, exact_share: one row per prompt.
    """
    contenders, models = table["contender"].unique(), table["model"].unique()
    across = min(PANELS_A_ROW, len(contenders))
    down = math.ceil(len(contenders) / across)
    with house_style():
        figure = Figure(figsize=(2.5 * across + 2.4, 2.1 * down + 0.5))
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for panel, name in zip(panels.flat, contenders, strict=False):
            _panel(panel, table[table["contender"] == name], list(models))
            panel.set_title(str(name), loc="left", fontsize=8)
        for panel in list(panels.flat)[len(contenders) :]:
            panel.set_visible(False)
        for panel in panels[-1]:
            panel.set_xlabel("exact share")
        for panel in panels[:, 0]:
            panel.set_ylabel("share")
        first: Axes = panels.flat[0]
        handles, names = first.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper")
        return first


def _panel(ax: Axes, rows: pd.DataFrame, models: list[str]) -> None:
    ax.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle=":")
    for index, model in enumerate(models):
        own = rows[rows["model"] == model].dropna(subset=["share", "exact_share"])
        style = look(index)
        label = f"{model} (n = {number_text(len(own))})"
        ax.scatter(
            own["exact_share"],
            own["share"],
            s=12,
            marker=style.marker,
            color=style.colour,
            alpha=0.5,
            linewidths=0,
            label=label,
        )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
