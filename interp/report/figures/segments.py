"""Shares of segments as bars."""

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.bars import grouped_bars
from interp.report.figures.style import panel_a_model
from interp.report.formatting import segment_label


def segment_shares(table: pd.DataFrame) -> Axes:
    """The mean share of each segment by each method, a panel per model.

    Args:
        table: what `interp.analysis.segments.segment_table` gives.
    """
    named = table.assign(segment=table["segment"].map(segment_label))
    return panel_a_model(named, _bars)


def _bars(rows: pd.DataFrame, ax: Axes | None) -> Axes:
    ax = grouped_bars(rows, x="segment", y="share", hue="method", n="prompts", ax=ax)
    ax.set_ylabel("mean share of the prompt's scores")
    ax.tick_params(axis="x", labelrotation=90, labelsize=8)
    return ax
