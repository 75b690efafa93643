"""Figures of the ledger: shares of failures as stacked bars, and curves of read and used."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from interp.report.figures.style import (
    QUIET,
    Picture,
    add_legend,
    distinct,
    house_style,
    look,
    mark,
    mark_points,
    n_of,
    new_axes,
    row_height,
    wrapped,
)
from interp.report.glance import WIDTH

_ROOM = 0.09
"""Smallest share whose bar has room for its number."""

_BAR = 0.62
"""Height of a bar, of 1 from model to model."""


def stacked_shares(shares: pd.DataFrame) -> Axes:
    """One bar per model, divided by the entries of its failures, with an interval for each share.

    `shares` has rows of `ledger_table` about wrong answers.
    """
    models, entries = distinct(shares["model"]), distinct(shares["entry"])
    with house_style():
        height = max(1, len(models)) * row_height(models, 0.8) + 1.5
        ax = new_axes(width=WIDTH, height=height)
        for up, model in enumerate(models):
            start = 0.0
            rows = shares[shares["model"] == model].set_index("entry")
            for index, entry in enumerate(entries):
                share, low, high = (float(rows.loc[entry, name]) for name in _NUMBERS)
                style, label = look(index), entry if up == 0 else None
                bar = ax.barh(
                    up,
                    share,
                    height=_BAR,
                    left=start,
                    label=label,
                    color=style.color,
                    hatch=style.hatch,
                    edgecolor="white",
                    linewidth=0,
                )
                about = {**rows.loc[entry].to_dict(), "entry": entry}
                at, names = (up, index), ["model", "entry"]
                mark(ax, bar.patches[0], about, at=at, number="share", named=names)
                if share >= _ROOM:
                    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
                    ax.text(
                        start + share / 2, up - 0.12, f"{share:.0%}", va="center", ha="center",
                        fontsize=8, bbox=box,
                    )  # fmt: skip
                # Whiskers of neighbors would overlap on one line.
                place = up + _BAR / 2 + 0.06 + 0.07 * index
                ax.plot([start + low, start + high], [place] * 2, color=style.color, linewidth=2)
                ax.plot([start + share], [place], marker="|", color=style.color, markersize=6)
                start += share
        counts = shares.drop_duplicates("model").set_index("model")["n"]
        names = [f"{wrapped(model)}\nn = {int(counts[model]):,}" for model in models]
        ax.set_yticks(range(len(models)), names)
        ax.set_ylim(len(models) - 0.3, -0.5)
        ax.set_xlim(0, max(1.0, ax.dataLim.x1) + 0.01)
        ax.set_xticks(np.linspace(0, 1, 6))
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        ax.grid(visible=False, axis="y")
        ax.set_xlabel("share of failures")
        add_legend(ax, entries)
        return ax


_NUMBERS = ("share", "low", "high")


def read_and_used(curves: pd.DataFrame) -> Axes:
    """Above: how often the fact is read at each layer; below: what exchanging it there does.

    `curves` has the rows of `LedgerResults.curves` of one model.
    """
    layers = curves["layer"]
    with house_style():
        figure = Picture(figsize=(WIDTH, 5.2))
        read: Axes
        used: Axes
        read, used = figure.subplots(2, 1, sharex=True)
        named = {"read": "in the prompt", "embedding": "from the embedding alone"}
        for index, (name, label) in enumerate(named.items()):
            _band(read, curves, name, index)
            read.lines[-1].set_label(label)
        read.set_ylim(-0.02, 1.02)
        read.set_ylabel("read: right word first")
        add_legend(read, [*named.values()])
        exchanged = curves.dropna(subset="used")
        _band(used, exchanged, "used", 2)
        used.axhline(0, color=QUIET, linewidth=1, linestyle="--")
        used.set_ylabel("used: logits beyond\nrandom directions")
        used.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(layers):
            used.set_xlim(layers.min() - 0.5, layers.max() + 0.5)
        count = n_of(exchanged["exchanged"])
        used.set_xlabel(f"layer; −1: embeddings ({count} prompts)")
        return used


def _band(ax: Axes, rows: pd.DataFrame, name: str, index: int) -> None:
    style, layers = look(index), rows["layer"]
    low, high = (rows[f"{name}_{end}"].astype(float) for end in ("low", "high"))
    ax.fill_between(layers, low, high, color=style.color, alpha=0.18, linewidth=0)
    values = rows[name].astype(float)
    # Markers, as a single layer has no line.
    shown = f"{style.line}{style.marker}"
    ax.plot(layers, values, shown, color=style.color, markersize=3.5)
    places = list(zip(layers, values, strict=True))
    mark_points(ax, rows, places, series=-index, number=name, named=["layer"])
