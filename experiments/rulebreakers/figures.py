"""The figures of the paper and of additional analyses, each drawn from a table."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.report.figures.bars import grouped_bars
from interp.report.figures.lines import matrix
from interp.report.figures.points import (
    cluster_points,
    interval_points,
    labeled_points,
    point_cloud,
)
from interp.report.figures.style import panel_a_model
from interp.report.formatting import number_text
from interp_experiments.rulebreakers.prompts import SIDES

CHANCE = 0.25
"""The paired accuracy of random answers (Section 3.4)."""

_RULES = {"mt": "modus tollens", "ds": "disjunctive syllogism"}
_SIDES = {side: side.replace("_", "-") for side in SIDES}
_ENDS = ("low", "high")


def paired_accuracy_by_group(table: pd.DataFrame, expected: pd.DataFrame) -> Axes:
    """Paired accuracy, overall and by rule and entity group, with a bar per model (Figure 3).

    The line across each overall bar is the chance level, given the model's rate of positive
    answers. The diamond is the accuracy expected if the two sides are independent.

    `expected` is `sensitivity(results)`.
    """
    paired = table[table["measure"] == "paired"]
    group = paired["rule"].map(_RULES).fillna(paired["rule"]) + ", " + paired["entity_group"]
    own = {"paired_accuracy": "accuracy", "paired_low": "low", "paired_high": "high"}
    overall = expected[["model", "pairs", *own]].rename(columns=own).assign(group="overall")
    bars = pd.concat([overall, paired.assign(group=group)], ignore_index=True)
    ax = grouped_bars(
        # Break the line after the owner, since whole names would not fit below a group of bars.
        bars.assign(model=bars["model"].str.replace("/", "/\n", n=1)),
        x="model",
        y="accuracy",
        hue="group",
        n="pairs",
        interval=_ENDS,
    )
    groups = bars["group"].nunique()
    places = np.arange(len(expected)) - (groups - 1) / 2 * 0.82 / groups
    for column, marker, size in (("chance_yes_rate", "_", 12), ("independent_sides", "D", 4)):
        ax.plot(
            places,
            expected[column],
            linestyle="",
            marker=marker,
            markersize=size,
            color="black",
            markerfacecolor="white",
            markeredgewidth=1.2,
        )
    ax.axhline(CHANCE, color="black", linewidth=0.8, linestyle=":")
    ax.set_ylim(0, 1)
    ax.set_ylabel("paired accuracy")
    return ax


def accuracy_by_side(table: pd.DataFrame) -> Axes:
    """Accuracy on rulebreakers and on non-rulebreakers, one row per model (Figure 4).

    `table` is `accuracy(results)`.
    """
    sides = table[table["measure"].isin(SIDES)]
    return _dots(sides.assign(measure=sides["measure"].map(_SIDES)), hue="measure")


def accuracy_by_question_verb(table: pd.DataFrame, *, side: str) -> Axes:
    """Accuracy on one side by question verb, one row per model (Figure 8).

    `table` is `accuracy(results, "question_verb")`.
    """
    shown = table[table["measure"] == side]
    ax = _dots(shown, hue="question_verb")
    # The axis begins at the next multiple of 0.05 below the lowest value.
    least = np.nanmin(shown[["accuracy", "low"]].to_numpy(dtype=float), initial=1.0)
    ax.set_xlim(np.floor(20 * least) / 20 - 0.02, 1.02)
    ax.set_xlabel(f"accuracy on {_SIDES[side]}s")
    return ax


def _dots(table: pd.DataFrame, *, hue: str) -> Axes:
    ax = interval_points(table, x="accuracy", y="model", hue=hue, n="pairs", interval=_ENDS)
    ax.set_xlim(-0.02, 1.02)
    return ax


def paired_accuracy_by_phrasing(table: pd.DataFrame, spread: pd.DataFrame) -> Axes:
    """Paired accuracy by phrasing, one row per model, with range and SD (Figure 7).

    `spread` is `phrasings(results)`.
    """
    remarks = {
        row.model: f"{row.model}\nrange {row.range:.2f}, SD {row.sd:.2f}"
        for row in spread.itertuples()
    }
    paired = table[table["measure"] == "paired"]
    ax = matrix(
        paired.assign(model=paired["model"].map(remarks), paired_accuracy=paired["accuracy"]),
        x="phrasing",
        y="model",
        value="paired_accuracy",
        n="pairs",
        interval=_ENDS,
    )
    ax.set_ylabel("model")
    return ax


def confidence(table: pd.DataFrame, entities: pd.DataFrame) -> Axes:
    """Difference in confidence within pairs, one dot per entity pair, by model (Figure 5).

    The tables are `confidence(results)` and `confidence_differences(results)`.
    """
    ax = _clusters(
        entities.assign(group="difference"), table.assign(group="difference"), x="difference"
    )
    ax.axvline(0, color="black", linewidth=0.8, linestyle=":")
    ax.set_xlabel("confidence if right minus confidence if wrong, within pairs")
    return ax


def familiarity(table: pd.DataFrame, cities: pd.DataFrame) -> Axes:
    """Familiarity of recognized and failed pairs, one dot per city, by model (Figure 6).

    `table` has the rows of `familiarity(results)` about one set of cities.
    """
    columns = {"mean": "familiarity", "low": "low", "high": "high", "clusters": "clusters"}
    means = pd.concat(
        table[["model", "p_holm", *(f"{name}_{group}" for name in columns)]]
        .rename(columns={f"{name}_{group}": shown for name, shown in columns.items()})
        .assign(group=group)
        for group in ("recognized", "failed")
    )
    return _clusters(cities, means, x="familiarity")


def _clusters(points: pd.DataFrame, means: pd.DataFrame, *, x: str) -> Axes:
    return cluster_points(
        points,
        means,
        x=x,
        y="model",
        hue="group",
        size="pairs",
        n="clusters",
        interval=_ENDS,
        p="p_holm",
    )


def ratio_and_accuracy(table: pd.DataFrame, *, ratio: str) -> Axes:
    """Paired accuracy against the geometric mean of score ratios, one point per model.

    `table` is `attribution(results)`.
    """
    ax = labeled_points(
        table,
        x=ratio,
        y="paired_accuracy",
        label="model",
        x_interval=(f"{ratio}_low", f"{ratio}_high"),
        y_interval=("paired_low", "paired_high"),
    )
    ax.set_xlabel(ax.get_xlabel().replace("geometric", "ratio, geometric mean"))
    return ax


def familiarity_and_accuracy(table: pd.DataFrame, correlations: pd.DataFrame) -> Axes:
    """Paired accuracy against familiarity: one panel per model, one point per city.

    `table` has the rows of `entities(results)` about cities; each panel states the correlation of
    `entity_correlations(results)`.
    """
    chosen = correlations.query("x == 'familiarity' and y == 'paired_accuracy'")
    by_model = chosen.set_index("model")

    def draw(rows: pd.DataFrame, ax: Axes) -> Axes:
        ax = point_cloud(rows, x="familiarity", y="paired_accuracy", size="pairs", ax=ax)
        rho, p = by_model.loc[rows["model"].iloc[0], ["rho", "p_holm"]]
        stated = f"rho {number_text(rho)}, p {number_text(p, p_value=True)}"
        ax.set_xlabel(f"{ax.get_xlabel()}\n{stated}")
        return ax

    return panel_a_model(table, draw)
