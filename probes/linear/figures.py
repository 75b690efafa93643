"""Figures that show the results of the probes."""

import pandas as pd
from matplotlib.axes import Axes

from interp.extend.figures import QUIET, lines, panel_a_model, segment_label
from interp.extend.statistics import FEWEST

ENOUGH = 2 * FEWEST
"""Minimum number of prompts for drawing an accuracy, which also needs `FEWEST` clusters."""

_RANGE = (0.2, 1.02)
"""Range of the accuracy axis in a panel."""


def probe_accuracy(table: pd.DataFrame) -> Axes:
    """The table of `linear_probes` by layer, with one panel per model and position; the first.

    Bands are 95% intervals; gray: the mean control accuracy and its standard deviation over draws.
    Subsets with fewer than `ENOUGH` prompts or `FEWEST` clusters are not drawn.
    """
    several = table["position"].nunique() > 1
    places = table["model"] + ", " + table["position"].map(segment_label)
    return panel_a_model(table.assign(model=places if several else table["model"]), _panel)


def _panel(rows: pd.DataFrame, ax: Axes) -> Axes:
    enough = (rows["n_prompts"] >= ENOUGH) & (rows["n_clusters"] >= FEWEST)
    shown = rows[rows["prompts"].isin(["all", "failed"]) & enough]
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
        shown.assign(subset=shown["prompts"] + " pairs (95% interval)"),
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
    ax.plot(
        line["layer"],
        mean,
        color=QUIET,
        linestyle=":",
        linewidth=1.2,
        label="control task (mean and SD)",
    )
