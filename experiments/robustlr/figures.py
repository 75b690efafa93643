"""The figures of the study of RobustLR (paper, Figures 4 to 6 and 8)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter

from interp.report.figures.bars import grouped_bars
from interp.report.figures.style import (
    Picture,
    distinct,
    house_style,
    legend_beside,
    look,
    new_axes,
    panel_a_model,
)
from interp_experiments.robustlr.language import LABELS

_F1 = "weighted F1"
_INTERVAL = ("f1_low", "f1_high")
_COLUMNS = 4
"""Number of panels in a row of Figure 8."""


def operators(table: pd.DataFrame) -> Axes:
    """Weighted F1 for each group of edits, with one bar per model (Figure 4).

    `table` comes from `tables.operators`, with the rows of either models or guesses.
    """
    return grouped_bars(
        _named(table), x="group", y=_F1, hue="model", n="theories", interval=_INTERVAL
    )


def distractors(table: pd.DataFrame) -> Axes:
    """Weighted F1 of contrast sets with and without distractors, one panel per model (Figure 6).

    `table` comes from `tables.distractors`, with the rows of either models or guesses.
    """

    def draw(rows: pd.DataFrame, ax: Axes) -> Axes:
        return grouped_bars(
            rows,
            x="set",
            y=_F1,
            hue="theories_have",
            n="theories",
            interval=_INTERVAL,
            groups=distinct(table["theories_have"]),
            ax=ax,
        )

    return panel_a_model(_named(table), draw)


def sizes(table: pd.DataFrame) -> Axes:
    """Weighted F1 against the number of training statements, one line per kind of set (Figure 5).

    `table` comes from `tables.size_table`, for models that started from the same weights.
    """
    with house_style():
        ax = new_axes()
        for index, (kind, rows) in enumerate(table.groupby("sets", sort=False)):
            style = look(index)
            low, high = (rows["f1"] - rows["f1_low"], rows["f1_high"] - rows["f1"])
            ax.errorbar(
                rows["statements"],
                rows["f1"],
                yerr=[low, high],
                color=style.color,
                linestyle=style.line,
                marker=style.marker,
                label=f"{kind} sets",
            )
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(sorted(table["statements"].unique())))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_ylim(0, 1.05)
        counts = table["theories"]
        ax.set_xlabel(f"training statements (n = {counts.min():,} to {counts.max():,} theories)")
        ax.set_ylabel(_F1)
        ax.legend()
    return ax


def features(table: pd.DataFrame) -> Axes:
    """Share of each label against the value of each feature, and the value's frequency (Figure 8).

    `table` comes from `tables.feature_table`.
    """
    names = table["feature"].drop_duplicates().tolist()
    rows = -(-len(names) // _COLUMNS)
    with house_style():
        figure = Picture(figsize=(3.0 * _COLUMNS, 2.6 * rows + 0.4))
        panels = figure.subplots(rows, _COLUMNS, squeeze=False, sharey=True)
        for name, ax in zip(names, panels.flat, strict=False):
            _feature(table[table["feature"] == name], name, ax)
        for ax in panels.flat[len(names) :]:
            ax.set_axis_off()
        handles, _ = panels[0, 0].get_legend_handles_labels()
        legend_beside(figure, handles)
    return figure.axes[0]


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The table, with the scores in a column named after the axis."""
    return table.rename(columns={"f1": _F1})


def _feature(rows: pd.DataFrame, name: str, ax: Axes) -> None:
    """Lines: shares of labels; bars: instances per value, relative to the most frequent value."""
    ax.bar(rows["value"], rows["n"] / rows["n"].max(), color="#d0d7de", label="instances")
    for index, label in enumerate(LABELS):
        style = look(index)
        ax.plot(
            rows["value"],
            rows[label],
            color=style.color,
            linestyle=style.line,
            marker=style.marker,
            markersize=6 - 1.5 * index,
            label=label,
        )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, 1.05)
    ax.set_xlabel(f"number of {name}\n(n = {rows['n'].sum():,})", fontsize=9)
