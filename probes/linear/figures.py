"""Figures that show the results of the probes."""

import pandas as pd
from matplotlib.axes import Axes

from interp.extend.figures import lines, panel_a_model, segment_label
from interp.extend.statistics import FEWEST, SIGNIFICANT

ENOUGH = 2 * FEWEST
"""Minimum number of prompts for drawing an accuracy, which also needs `FEWEST` clusters."""

_ENDS = "accuracy_low", "accuracy_high"


def probe_accuracy(table: pd.DataFrame) -> Axes:
    """The table of `linear_probes` by layer, with a panel for each model and position; the first.

    Bands are 95% intervals; those of the control task are the standard deviation over its draws.
    Subsets with fewer than `ENOUGH` prompts or `FEWEST` clusters are not drawn.
    """
    enough = (table["n_prompts"] >= ENOUGH) & (table["n_clusters"] >= FEWEST)
    rows = table[enough & table["prompts"].isin(["all", "failed"])]
    named = rows.assign(subset=rows["prompts"] + " pairs (95% interval)")
    every, failed = (named[named["prompts"] == subset] for subset in ("all", "failed"))
    mean, sd = every["control_accuracy"], every["control_sd"]
    ends = dict(zip(_ENDS, (mean - sd, mean + sd), strict=True))
    control = every.assign(subset="control task (mean and SD)", accuracy=mean, **ends)
    shown = pd.concat([every, control, failed])
    if table["position"].nunique() > 1:
        shown["model"] += ", " + shown["position"].map(segment_label)

    def draw(panel: pd.DataFrame, ax: Axes) -> None:
        lines(panel, x="layer", y="accuracy", hue="subset", n="n_prompts", interval=_ENDS, ax=ax)
        ax.set_ylim(0.2, 1.02)
        if panel["p_family"].min() > SIGNIFICANT:
            ax.set_xlabel(f"{ax.get_xlabel()}\nno layer is shown to be above chance")

    return panel_a_model(shown, draw)
