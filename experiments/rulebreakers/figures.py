"""Figures of the paper and of our additional analyses; each takes a table and `ax`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.special import stdtrit

from interp.analysis.intervals import UPPER
from interp.report.figures import (
    grouped_bars,
    interval_points,
    labelled_points,
    matrix,
    panel_a_model,
    point_cloud,
)
from interp_experiments.rulebreakers.prompts import SIDES

CHANCE = 0.25
"""Paired accuracy of random answers (Section 3.4)."""

_RULES = {"mt": "modus tollens", "ds": "disjunctive syllogism"}
_SIDES = {side: side.replace("_", "-") for side in SIDES}


def paired_accuracy_by_group(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Paired accuracy by rule and entity group, a cluster of bars per model (Figure 3).

    `table` is `tables.accuracy(results, "rule", "entity_group")`.
    """
    paired = table[table["measure"] == "paired"]
    group = paired["rule"].map(_RULES).fillna(paired["rule"]) + ", " + paired["entity_group"]
    ax = _bars(paired.assign(group=group), hue="group", ax=ax)
    ax.axhline(CHANCE, color="black", linewidth=0.8, linestyle=":")
    ax.set_ylabel("paired accuracy (dotted: chance)")
    return ax


def accuracy_by_side(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Accuracy on rulebreakers and on non-rulebreakers by model (Figure 4).

    `table` is `tables.accuracy(results)`.
    """
    sides = table[table["measure"].isin(SIDES)]
    return _bars(sides.assign(measure=sides["measure"].map(_SIDES)), hue="measure", ax=ax)


def accuracy_by_question_verb(table: pd.DataFrame, *, side: str, ax: Axes | None = None) -> Axes:
    """Accuracy on one side by the verb of the question (Figure 8).

    `table` is `tables.accuracy(results, "question_verb")`.
    """
    ax = _bars(table[table["measure"] == side], hue="question_verb", ax=ax)
    ax.set_ylabel(f"accuracy on {_SIDES[side]}s")
    return ax


def paired_accuracy_by_phrasing(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Paired accuracy by phrasing, a row per model (Figure 7).

    `table` is `tables.accuracy(results, "phrasing")`.
    """
    paired = _short(table[table["measure"] == "paired"])
    return matrix(paired, x="phrasing", y="model", value="accuracy", n="pairs", ax=ax)


def confidence(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Mean confidence in positive answers on either side, by model (Figure 5).

    `table` is `tables.confidence(results)`.
    """
    return _two_groups(table, value="confidence in positive answers", ax=ax)


def familiarity(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Mean familiarity of recognized and failed pairs, by model (Figure 6).

    `table` is the rows of `tables.familiarity(results)` about one set of cities.
    """
    return _two_groups(table, value="familiarity", ax=ax)


def ratio_and_accuracy(table: pd.DataFrame, *, ratio: str, ax: Axes | None = None) -> Axes:
    """Paired accuracy over a mean score ratio, a point per model.

    `table` is `tables.attribution(results)`.
    """
    return labelled_points(_short(table), x=ratio, y="paired_accuracy", label="model", ax=ax)


def familiarity_and_accuracy(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Paired accuracy over familiarity, a panel per model, a point per entity pair.

    `table` is `tables.entities(results)`; with `ax` it must hold one model.
    """

    def draw(rows: pd.DataFrame, ax: Axes) -> Axes:
        return point_cloud(rows, x="familiarity", y="paired_accuracy", ax=ax)

    return draw(table, ax) if ax is not None else panel_a_model(table, draw)


def _bars(table: pd.DataFrame, *, hue: str, ax: Axes | None) -> Axes:
    ax = grouped_bars(
        _short(table),
        x="model",
        y="accuracy",
        hue=hue,
        n="pairs",
        interval=("low", "high"),
        ax=ax,
    )
    ax.set_ylim(0, 1)
    return ax


def _two_groups(table: pd.DataFrame, *, value: str, ax: Axes | None) -> Axes:
    """Means of the two groups of a Welch table with their own 95% intervals."""
    long = pd.concat(
        pd.DataFrame(
            {
                "model": table["model"],
                "group": table[f"group_{side}"].map(lambda name: _SIDES.get(name, name)),
                "n": table[f"n_{side}"],
                value: table[f"mean_{side}"],
                "half": stdtrit((table[f"n_{side}"] - 1).clip(lower=1), UPPER)
                * table[f"sd_{side}"]
                / np.sqrt(table[f"n_{side}"].clip(lower=1)),
                "p": table["p_holm"],
            }
        )
        for side in ("a", "b")
    )
    long = _short(long.assign(low=long[value] - long["half"], high=long[value] + long["half"]))
    return interval_points(
        long, x=value, y="model", hue="group", n="n", interval=("low", "high"), p="p", ax=ax
    )


def _short(table: pd.DataFrame) -> pd.DataFrame:
    """Model names without their owner, which would not fit below a bar."""
    return table.assign(model=table["model"].str.rpartition("/")[2])
