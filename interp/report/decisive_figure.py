"""Which methods find the segment that decides, as a figure."""

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.bars import grouped_bars
from interp.report.figures.panels import panel_a_model
from interp.report.formatting import segment_label
from interp.report.style import QUIET


def decisive_title(decisive: tuple[str, str] | None) -> str:
    """What a table of these is called."""
    own, beside = map(segment_label, decisive or ("the decisive segment", "others"))
    return f"Do attributions find {own} among {beside}?"


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
