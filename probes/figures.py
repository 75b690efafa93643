"""Figures of what a probe measured."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interp.report.figures.lines import lines
from interp.report.style import QUIET, house_style, legend_beside, new_axes

ENOUGH = 50
"""Least number of prompts behind a drawn accuracy."""

_DRAWN = ("all", "failed")
"""The subsets that have a line."""

_POSITIONS = {"last_token": "last token", "premise2": "end of premise 2"}


def probe_accuracy(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Accuracy of linear probes by layer: a row of panels per position, a column per model.

    Bands are 95% intervals, the grey line is the mean control accuracy with its standard deviation
    over draws. Subsets of fewer than `ENOUGH` prompts are not drawn.

    Args:
        table: what `linear_probes` returns; with `ax`, of one model and position.
        ax: where to draw; a new figure if None.

    Returns:
        The axes, of the first panel if there are several.
    """
    with house_style():
        if ax is not None or table[["model", "position"]].drop_duplicates().shape[0] == 1:
            panel = _panel(table, ax or new_axes(width=4.5, height=3.5))
            panel.legend(loc="lower left", bbox_to_anchor=(0, 1.0))
            return panel
        return _grid(table)


def _grid(table: pd.DataFrame) -> Axes:
    positions, models = (table[name].drop_duplicates().tolist() for name in ("position", "model"))
    figure = Figure(figsize=(2.2 + 2.1 * len(models), 0.9 + 2.3 * len(positions)))
    panels = figure.subplots(len(positions), len(models), squeeze=False, sharex="col", sharey=True)
    for position, row in zip(positions, panels, strict=True):
        for model, ax in zip(models, row, strict=True):
            panel = _panel(table[(table["model"] == model) & (table["position"] == position)], ax)
            panel.label_outer()
            if legend := panel.get_legend():
                legend.remove()
        row[0].set_ylabel(f"accuracy\n{_POSITIONS.get(position, position)}")
    for model, ax in zip(models, panels[0], strict=True):
        ax.set_title(str(model).replace("/", "/\n"), fontsize=9)
    handles = {h.get_label(): h for ax in panels.flat for h in ax.get_lines()}
    drawn = [handles[name] for name in (*map(_name, _DRAWN), _CONTROL) if name in handles]
    legend_beside(figure, drawn)
    return figure.axes[0]


_CONTROL = "control task (mean and SD)"


def _name(subset: str) -> str:
    return f"{subset} pairs (95% interval)"


def _panel(rows: pd.DataFrame, ax: Axes) -> Axes:
    shown = rows[rows["prompts"].isin(_DRAWN) & (rows["n_prompts"] >= ENOUGH)]
    ax = lines(
        shown.assign(subset=shown["prompts"].map(_name)),
        x="layer",
        y="accuracy",
        hue="subset",
        n="n_prompts",
        interval=("accuracy_low", "accuracy_high"),
        ax=ax,
    )
    _control(rows[rows["prompts"] == "all"].sort_values("layer"), ax)
    counts = shown.drop_duplicates("prompts")
    text = "\n".join(map("{}: n = {:,}".format, counts["prompts"], counts["n_prompts"]))
    ax.text(0.98, 0.03, text, transform=ax.transAxes, ha="right", fontsize=8)
    ax.set_ylim(0.3, 1.02)
    ax.set_xlabel("layer")
    return ax


def _control(line: pd.DataFrame, ax: Axes) -> None:
    mean, sd = (line[name].astype(float) for name in ("control_accuracy", "control_sd"))
    ax.fill_between(line["layer"], mean - sd, mean + sd, color=QUIET, alpha=0.15, linewidth=0)
    ax.plot(line["layer"], mean, color=QUIET, linestyle=":", linewidth=1.2, label=_CONTROL)
