"""Which methods find the segments that decide, as a figure."""

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.bars import grouped_bars
from interp.report.figures.style import QUIET, panel_a_model
from interp.report.formatting import segment_label
from interp.runs.schemas import DecisiveRecord


def decisive_title(decisive: DecisiveRecord | None) -> str:
    """What a table of these is called."""
    what = "deciding segments" if decisive is None else segment_label(decisive.factor)
    return f"Do attributions find the {what}?"


def decisive_segments(table: pd.DataFrame, *, hue: str = "reading") -> Axes:
    """The area under the ROC curve over segments, a panel per model; the line is chance.

    Args:
        table: `interp.analysis.decisive.decisive_table`.
        hue: the column of the bars of a method.
    """
    named = table.assign(
        method=table["method"].str.replace("control: ", ""),
        reading=table["reading"].replace("", "control"),
    )
    return panel_a_model(named, lambda rows, ax: _bars(rows, ax, hue))


def _bars(rows: pd.DataFrame, ax: Axes, hue: str) -> Axes:
    ax = grouped_bars(
        rows, x="method", y="auc", hue=hue, n="prompts", interval=("auc_low", "auc_high"), ax=ax
    )
    ax.axhline(0.5, color=QUIET, linewidth=1, linestyle="--")
    ax.set_ylim(0, 1)
    ax.set_ylabel("AUC over segments")
    ax.tick_params(axis="x", labelsize=7, labelrotation=90)
    return ax
