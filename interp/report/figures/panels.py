"""A panel for each model, with one legend for all."""

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure

from interp.report.figures.axes import distinct
from interp.report.formatting import UNDEFINED
from interp.report.style import house_style, legend_beside

PANELS_A_ROW = 3


def panel_a_model(
    table: pd.DataFrame,
    draw: Callable[[pd.DataFrame, Axes], Axes],
    *,
    share_x: bool = True,
    handles: Sequence[Artist | Container] | None = None,
) -> Axes:
    """A new figure with a panel for each model and one legend; returns its first axes.

    Without any rows it says that there is nothing to draw.

    Args:
        table: rows with a column model.
        draw: draws the rows of one model.
        share_x: whether the panels have one scale across; they always have one up.
        handles: entries of the legend; those of the first panel's own if None.
    """
    models = distinct(table["model"])
    columns = max(1, min(PANELS_A_ROW, len(models)))
    rows = max(1, -(-len(models) // columns))
    with house_style():
        figure = Figure(figsize=(3.6 * columns, 3.0 * rows + 0.5))
        panels = figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=True)
        for model, ax in zip(models, panels.flat, strict=False):
            draw(table[table["model"] == model], ax)
            ax.set_title(str(model), fontsize=10)
            if ax not in panels[:, 0]:
                ax.set_ylabel("")
            legend = ax.get_legend()
            if legend is not None:
                handles = handles or ax.get_legend_handles_labels()[0]
                legend.remove()
        for ax in panels.flat[len(models) :]:
            ax.set_axis_off()
        if not len(models):
            figure.text(0.5, 0.5, UNDEFINED, ha="center")
        if handles:
            legend_beside(figure, handles)
    return figure.axes[0]
