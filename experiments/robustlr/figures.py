"""The figures of the study of RobustLR (paper, Figures 4 to 6 and 8)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from interp.extend.figures import distinct, grouped_bars, lines, panel_a_model
from interp_experiments.robustlr.language import LABELS

_F1 = "weighted F1"
_INTERVAL = ("f1_low", "f1_high")


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
    ax = lines(_named(table), x="statements", y=_F1, hue="sets", n="theories", interval=_INTERVAL)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(sorted(table["statements"].unique())))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(0, 1.05)
    return ax


def features(table: pd.DataFrame) -> Axes:
    """Share of each label against the value of each feature, and the value's frequency (Figure 8).

    `table` comes from `tables.feature_table`.
    """

    def draw(rows: pd.DataFrame, ax: Axes) -> None:
        each = rows.drop_duplicates("value")
        ax.bar(each["value"], each["n"] / each["n"].max(), color="#d0d7de", label="instances")
        lines(rows, x="value", y="share", hue="label", n="n", ax=ax)
        ax.set_ylim(0, 1.05)

    own = table.melt(["feature", "value", "n"], list(LABELS), "label", "share")
    return panel_a_model(own.rename(columns={"feature": "model"}), draw)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The table, with the scores in a column named after the axis."""
    return table.rename(columns={"f1": _F1})
