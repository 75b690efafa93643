"""Figures of readings: curves over layers with their controls, and grids of layers and tokens."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.report.figures.style import (
    PALE,
    house_style,
    look,
    mark_areas,
    mark_points,
    n_of,
    new_axes,
)
from interp.report.formatting import segment_label

_COLUMNS = 16
"""Largest number of layers for which each cell shows its number."""


def over_layers(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """The accuracy of each lens over layers, with its interval, and its two controls.

    Args:
        table: rows of `reading_table` for one model and group of tokens.
        ax: the axes to draw on; new axes if None.
    """
    with house_style():
        ax = ax or new_axes()
        for index, (method, rows) in enumerate(table.groupby("method", sort=False)):
            color, layers = look(index).color, rows["layer"].to_numpy()
            ends = rows[["accuracy_low", "accuracy_high"]].to_numpy(float).T
            ax.fill_between(layers, *ends, color=color, alpha=0.15, linewidth=0)
            for column, label, line, width in (
                ("accuracy", f"{method}", "-", 1.8),
                ("embedding", f"{method}, embedding alone", "--", 1.2),
                ("shuffled", f"{method}, shuffled", ":", 1.0),
            ):
                values = rows[column].to_numpy(float)
                ax.plot(layers, values, color=color, linestyle=line, linewidth=width, label=label)
            points = list(zip(layers, rows["accuracy"].astype(float), strict=True))
            names = ["method", "layer"]
            mark_points(ax, rows, points, series=-index, number="accuracy", named=names)
        ax.set_ylim(-0.02, 1.02)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"layer; −1: embeddings ({n_of(table['readings'])} readings)")
        ax.set_ylabel("share of readings in which\nthe right word comes first")
        ax.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0, ncols=index + 1, fontsize=8
        )
        return ax


def layers_by_groups(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """The accuracy at each group of tokens and layer, and below it what the embedding alone gives.

    Args:
        table: rows of `reading_table` for one model and method.
        ax: the axes to draw on; new axes if None.
    """
    groups = [*table["group"].drop_duplicates()]
    wide = {
        name: table.pivot(index="group", columns="layer", values=name).loc[groups]
        for name in ("accuracy", "embedding")
    }
    values = np.stack([own.to_numpy(float) for own in wide.values()], 1).reshape(
        2 * len(groups), -1
    )
    labels = [text for name in groups for text in (segment_label(name), "embedding alone")]
    layers = [*wide["accuracy"].columns]
    with house_style():
        ax = ax or new_axes(width=7.5, height=1.4 + 0.3 * len(labels))
        ax.grid(visible=False)
        ax.set_facecolor(PALE)
        ax.tick_params(length=0)
        image = ax.imshow(
            np.ma.masked_invalid(values), cmap="cividis", vmin=0, vmax=1, aspect="auto"
        )
        ax.figure.colorbar(image, ax=ax, label="right word first", shrink=0.9, pad=0.02)
        if len(layers) <= _COLUMNS:
            for (down, across), value in np.ndenumerate(values):
                ink = "white" if value < 0.55 else "black"
                text = f"{value:.2f}" if np.isfinite(value) else ""
                ax.text(across, down, text, ha="center", va="center", fontsize=7, color=ink)
        for number, name in enumerate(wide):
            order = [own if line == number else None for own in groups for line in range(len(wide))]
            mark_areas(ax, table, x="layer", y="group", number=name, columns=layers, rows=order)
        ax.set_yticks(range(len(labels)), labels)
        step = 1 + len(layers) // (_COLUMNS + 1)
        ax.set_xticks(
            range(0, len(layers), step), [str(layer).replace("-", "−") for layer in layers[::step]]
        )
        ax.set_xlabel(f"layer; −1: embeddings ({n_of(table['readings'])} readings)")
        return ax
