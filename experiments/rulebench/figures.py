"""The figures of the study of RuleBench (paper, Figures 2 and 4 to 6)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from interp.report.figures.bars import grouped_bars
from interp.report.figures.style import distinct, house_style, look, panel_a_model
from interp_experiments.rulebench.tables import DIMENSIONS


def radar(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """The five dimensions of rule following, one line per model (Figure 2).

    `table` is `tables.dimensions(results)`. Accuracies are shown as they are; the paper stretches
    each dimension to the range of its models. A dimension that was not measured leaves a gap.
    """
    with house_style():
        ax = ax or Figure(figsize=(6.4, 5.2)).add_subplot(projection="polar")
        assert isinstance(ax, PolarAxes)
        ax.set_theta_zero_location("N")
        ax.set_rlabel_position(36)
        angles = np.linspace(0, 2 * np.pi, len(DIMENSIONS), endpoint=False)
        for index, (model, rows) in enumerate(table.groupby("model", sort=False)):
            scores = rows.set_index("dimension")["score"].reindex(list(DIMENSIONS)).to_numpy(float)
            style = look(index)
            ax.plot(
                np.append(angles, angles[0]),
                np.append(scores, scores[0]),
                color=style.colour,
                marker=style.marker,
                linestyle=style.line,
                label=str(model),
            )
        counts = table.groupby("dimension")["n"].max()
        labels = [f"{name}\nn = {counts.get(name, 0)}" for name in DIMENSIONS]
        ax.set_xticks(angles, labels)
        ax.tick_params(axis="x", pad=20)
        ax.set_ylim(0, 1)
        ax.set_yticks([0.25, 0.5, 0.75, 1.0])
        ax.grid(visible=True, axis="both")
        ax.figure.legend(loc="outside lower center", ncols=3)
        return ax


def bars_by_set(table: pd.DataFrame, *, y: str, hue: str) -> Axes:
    """Shares with their intervals by set, one panel per model (Figures 4 to 6).

    Args:
        table: `tables.rule_quantities(cells)`, `tables.thoughts(cells)` or
            `tables.failures(results)`.
        y: the column with shares.
        hue: the column that each set has a bar for.
    """
    groups = distinct(table[hue])

    def draw(rows: pd.DataFrame, ax: Axes) -> Axes:
        grouped_bars(
            rows, x="set", y=y, hue=hue, n="n", interval=("low", "high"), groups=groups, ax=ax
        )
        ax.set_ylim(0, 1)
        ax.tick_params(axis="x", labelsize=7)
        return ax

    return panel_a_model(table, draw)
