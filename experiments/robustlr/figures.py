"""The figures of the study of RobustLR (paper, Figures 4 to 6 and 8)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from interp.extend.figures import grouped_bars, lines, panel_a_model
from interp_experiments.robustlr.language import LABELS
from interp_experiments.scaffold import bars_by_model

_F1 = "weighted F1"
_BARS = {"y": _F1, "n": "theories", "interval": ("f1_low", "f1_high")}


def operators(table: pd.DataFrame) -> Axes:
    """`tables.operators`: weighted F1 by group of edits, one bar per model or guess (Figure 4)."""
    return grouped_bars(_named(table), x="group", hue="model", **_BARS)


def distractors(table: pd.DataFrame) -> Axes:
    """`tables.distractors`: weighted F1 of contrast sets, one panel per model (Figure 6)."""
    return bars_by_model(_named(table), x="set", hue="theories_have", **_BARS)


def sizes(table: pd.DataFrame) -> Axes:
    """`tables.size_table` of models that began alike: F1 by training statements (Figure 5)."""
    ax = lines(_named(table), x="statements", hue="sets", **_BARS)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(sorted(table["statements"].unique())))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(0, 1.05)
    return ax


def features(table: pd.DataFrame) -> Axes:
    """`tables.feature_table`: share of each label and frequency of each value (Figure 8)."""

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
