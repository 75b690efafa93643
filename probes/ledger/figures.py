"""Figures of the ledger: shares of failures as bars, and curves of read and used."""

import pandas as pd
from matplotlib.axes import Axes

from interp.extend.figures import QUIET, WIDTH, Picture, curve, grouped_bars, house_style, new_axes
from interp.extend.results import READINGS, STEERING


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


def read_and_used(read: pd.DataFrame, used: pd.DataFrame) -> Axes:
    """Above: how often the fact is read at each layer; below: what exchanging it there does.

    Args:
        read: rows of the table of readings of one model.
        used: rows of `LedgerResults.used` of this model.
    """
    with house_style():
        figure = Picture(figsize=(WIDTH, 5.6))
        above: Axes
        below: Axes
        above, below = figure.subplots(2, 1, sharex=True)
    named = {"accuracy": "in the prompt", "embedding": "from the embedding alone"}
    curve(READINGS, read, x="layer", lines=named, ax=above)
    above.set_ylim(-0.02, 1.02)
    above.set_ylabel("read: right word first")
    curve(STEERING, used, x="layer", lines={"beyond": "beyond random directions"}, ax=below)
    below.axhline(0, color=QUIET, linewidth=1, linestyle="--")
    below.set_ylabel("used: logits")
    return below
