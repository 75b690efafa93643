"""Figures of attributions: the shares of segments, and how well methods find the deciding ones."""

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.bars_and_points import grouped_bars
from interp.report.figures.style import QUIET, distinct, panel_a_model, say_if_nothing_is_shown
from interp.report.formatting import segment_label


def segment_shares(table: pd.DataFrame) -> Axes:
    """The mean share of each segment by each method (`SEGMENTS`), with one panel per model."""
    named = table.assign(segment=table["segment"].map(segment_label))
    methods = distinct(named["method"])

    def draw(rows: pd.DataFrame, ax: Axes) -> None:
        grouped_bars(rows, x="segment", y="share", hue="method", n="prompts", groups=methods, ax=ax)
        ax.set_ylabel("mean share of the prompt's scores")
        ax.tick_params(axis="x", labelrotation=90, labelsize=8)

    return panel_a_model(named, draw)


def decisive_segments(table: pd.DataFrame, *, hue: str = "reading") -> Axes:
    """The AUC over segments (`decisive_table`), with one panel per model and a line at chance.

    `hue` is the column of the bars within each method's cluster.
    """
    named = table.assign(
        method=table["method"].str.replace("control: ", ""),
        reading=table["reading"].replace("", "control"),
    )
    groups = distinct(named[hue])
    ends = "auc_low", "auc_high"

    def draw(rows: pd.DataFrame, ax: Axes) -> None:
        grouped_bars(
            rows, x="method", y="auc", hue=hue, n="clusters", interval=ends, groups=groups, ax=ax
        )
        ax.axhline(0.5, color=QUIET, linewidth=1, linestyle="--")
        say_if_nothing_is_shown(ax, rows, ends, null=0.5)
        ax.set_ylim(0, 1)
        ax.set_ylabel("AUC over segments")
        ax.tick_params(axis="x", labelsize=7, labelrotation=90)

    return panel_a_model(named, draw)
