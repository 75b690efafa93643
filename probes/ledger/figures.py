"""Figures of the ledger: shares of failures as bars, and curves of read and used."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.bars import grouped_bars
from interp.report.figures.lines import lines
from interp.report.figures.style import QUIET, Picture, house_style, new_axes
from interp.report.glance import WIDTH


def entry_bars(shares: pd.DataFrame) -> Axes:
    """A bar with its interval for each entry of the failures of each model.

    `shares` has rows of `ledger_table` about wrong answers.
    """
    with house_style():
        ends, ax = ("low", "high"), new_axes(width=WIDTH, height=3.2)
        ax = grouped_bars(shares, x="model", y="share", hue="entry", n="n", interval=ends, ax=ax)
        ax.set_ylim(0, 1)
        ax.set_ylabel("share of failures")
        return ax


def read_and_used(curves: pd.DataFrame) -> Axes:
    """Above: how often the fact is read at each layer; below: what exchanging it there does.

    `curves` has the rows of `LedgerResults.curves` of one model.
    """
    with house_style():
        figure = Picture(figsize=(WIDTH, 5.6))
        above, below = figure.subplots(2, 1, sharex=True)
    named = {"read": "in the prompt", "embedding": "from the embedding alone"}
    _curves(curves, named, n="readings", ax=above)
    above.set_ylim(-0.02, 1.02)
    above.set_ylabel("read: right word first")
    exchanged = curves.dropna(subset="used")
    _curves(exchanged, {"used": "beyond random directions"}, n="exchanged", ax=below)
    below.axhline(0, color=QUIET, linewidth=1, linestyle="--")
    below.set_ylabel("used: logits")
    return below


def _curves(rows: pd.DataFrame, named: Mapping[str, str], *, n: str, ax: Axes) -> None:
    """A line for each number of `named`, which has the labels."""
    parts = []
    for name, label in named.items():
        ends = {f"{name}_low": "low", f"{name}_high": "high"}
        parts.append(rows.rename(columns=ends).assign(value=rows[name], line=label))
    table, interval = pd.concat(parts), ("low", "high")
    lines(table, x="layer", y="value", hue="line", n=n, interval=interval, ax=ax)
