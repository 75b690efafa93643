"""Figures that show the results of the probes."""

import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.lines import lines
from interp.report.figures.style import QUIET, Picture, house_style, legend_beside, new_axes
from interp.statistics.clusters import FEWEST

ENOUGH = 2 * FEWEST
"""Minimum number of prompts for drawing an accuracy. It also needs `FEWEST` clusters, so the figure
shows what the table tests.
"""

MODELS_A_ROW = 3
"""Maximum number of panels side by side; more would be too small to read on a page."""

_DRAWN = ("all", "failed")
"""The subsets that are drawn as lines."""

_RANGE = (0.2, 1.02)
"""Range of the accuracy axis in a panel."""

_POSITIONS = {"last_token": "last token", "premise2": "end of premise 2"}


def probe_accuracy(table: pd.DataFrame) -> Axes:
    """Accuracy of linear probes by layer, with one panel per model and position.

    Positions are stacked, with `MODELS_A_ROW` models side by side. Bands are 95% intervals. The
    gray line and band are the mean control accuracy and its standard deviation over draws. Subsets
    with fewer than `ENOUGH` prompts or `FEWEST` clusters are not drawn.

    Args:
        table: the table from `linear_probes`.

    Returns:
        The axes of the only or first panel.
    """
    with house_style():
        if len(table[["model", "position"]].drop_duplicates()) > 1:
            return _grid(table)
        panel = _panel(table, new_axes(width=4.5, height=3.5))
        if panel.get_lines():
            panel.legend(loc="lower left", bbox_to_anchor=(0, 1.0))
        return panel


def _grid(table: pd.DataFrame) -> Axes:
    positions, models = (table[name].drop_duplicates().tolist() for name in ("position", "model"))
    columns = min(MODELS_A_ROW, len(models))
    rows = [
        (models[start : start + columns], position)
        for start in range(0, len(models), columns)
        for position in positions
    ]
    figure = Picture(figsize=(2.9 * columns, 2.3 * len(rows) + 0.6))
    panels = figure.subplots(len(rows), columns, squeeze=False, sharey=True)
    for (shown, position), row in zip(rows, panels, strict=True):
        for model, ax in zip(shown, row, strict=False):
            panel = _panel(table[(table["model"] == model) & (table["position"] == position)], ax)
            if position == positions[0]:
                panel.set_title(str(model), fontsize=10)
            if position != positions[-1]:
                panel.set_xlabel("")
            panel.set_ylabel("")
            if legend := panel.get_legend():
                legend.remove()
        for ax in row[len(shown) :]:
            ax.set_axis_off()
        row[0].set_ylabel(f"accuracy\n{_POSITIONS.get(position, position)}")
    handles = {h.get_label(): h for ax in panels.flat for h in ax.get_lines()}
    drawn = [handles[name] for name in (*map(_name, _DRAWN), _CONTROL) if name in handles]
    legend_beside(figure, drawn)
    return figure.axes[0]


_CONTROL = "control task (mean and SD)"


def _name(subset: str) -> str:
    return f"{subset} pairs (95% interval)"


def _panel(rows: pd.DataFrame, ax: Axes) -> Axes:
    enough = (rows["n_prompts"] >= ENOUGH) & (rows["n_clusters"] >= FEWEST)
    shown = rows[rows["prompts"].isin(_DRAWN) & enough]
    if shown.empty:
        # If there is no line to draw, the panel shows the reason, and no layer axis.
        ax.text(
            0.5, 0.5, f"fewer than {ENOUGH} prompts\nor {FEWEST} clusters",
            transform=ax.transAxes, ha="center", va="center", fontsize=8, color=QUIET,
        )  # fmt: skip
        ax.set_xticks([])
        ax.grid(visible=False)
        ax.set_ylim(*_RANGE)
        ax.set_ylabel("accuracy")
        return ax
    ax = lines(
        shown.assign(subset=shown["prompts"].map(_name)),
        x="layer",
        y="accuracy",
        hue="subset",
        n="n_prompts",
        interval=("accuracy_low", "accuracy_high"),
        ax=ax,
    )
    _control(shown[shown["prompts"] == "all"].sort_values("layer"), ax)
    counts = shown.drop_duplicates("prompts")[["prompts", "n_prompts", "n_clusters"]]
    text = "\n".join("{}: n = {:,} in {:,} clusters".format(*row) for row in counts.to_numpy())
    ax.text(0.98, 0.03, text, transform=ax.transAxes, ha="right", fontsize=8)
    ax.set_ylim(*_RANGE)
    ax.set_xlabel("layer")
    return ax


def _control(line: pd.DataFrame, ax: Axes) -> None:
    mean, sd = (line[name].astype(float) for name in ("control_accuracy", "control_sd"))
    ax.fill_between(line["layer"], mean - sd, mean + sd, color=QUIET, alpha=0.15, linewidth=0)
    ax.plot(line["layer"], mean, color=QUIET, linestyle=":", linewidth=1.2, label=_CONTROL)
