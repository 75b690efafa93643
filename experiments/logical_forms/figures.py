"""The figures of the study of LogicalForms (paper, Figures 1 and 3 to 6)."""

from collections.abc import Collection
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator

from interp.extend import figures
from interp_experiments.logical_forms.effects import PERPLEXITY
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES

_NAMES = {
    "none": "no modality",
    "box": "□ necessity",
    "diamond": "◇ possibility",
    "or": "∨ disjunctive syllogism (or)",
    "mp": "→L modus ponens (mp)",
    "mt": "→R modus tollens (mt)",
    "or_fallacy": "∨! affirming a disjunct (or_fallacy)",
    "ac": "→L! affirming the consequent (ac)",
    "da": "→R! denying the antecedent (da)",
}
"""Levels of factors in words."""

_MARKERS = {"or": "o", "or_fallacy": "o", "mp": "^", "ac": "^", "mt": "s", "da": "s"}
"""A theorem and its fallacy have the same marker, filled for the theorem, hollow for the
fallacy."""


def forms_over_perplexity(table: pd.DataFrame, *, competent: Collection[str]) -> Axes:
    """Soft accuracy against perplexity, by model: `tables.by_form`, a point per form and set.

    A line joins the two points of a form, from the questions to their nonsense mirror (Figure 5).
    With only one set, there are no lines (Figure 1). Models that are not `competent` are gray.
    """
    draw = partial(_forms, competent=competent)
    with figures.house_style():
        return figures.panel_a_model(table, draw, handles=_handles())


def estimated_means(table: pd.DataFrame, *, response: str, chance: float | None = None) -> Axes:
    """Means with 95% intervals, one row per level (Figures 3 and 6).

    `table` is `Effects.means`, whose raw means, if any, are beside the adjusted ones. `chance`, the
    mean of random answers, is a dotted line.
    """
    value = f"mean {response}"
    means = table.assign(means="raw", **{value: table["mean"]})
    if "raw_mean" in table:
        ends = {"raw_mean": value, "raw_low": "low", "raw_high": "high"}
        raw = means.drop(columns=[value, "low", "high"]).rename(columns=ends)
        means = pd.concat([means.assign(means="adjusted"), raw])
    ax = figures.interval_points(
        means, x=value, y="level", hue="means", n="n", interval=("low", "high")
    )
    far = {row["level"]: " (extrapolated)" for row in table.to_dict("records") if row.get("note")}
    labels = []
    for level, _, n in (label.get_text().partition("\n") for label in ax.get_yticklabels()):
        words = _NAMES.get(level) or " ".join(_NAMES.get(word, word) for word in level.split())
        labels.append(f"{words}{far.get(level, '')}\n{n}")
    ax.set_yticklabels(labels)
    if chance is not None:
        ax.axvline(chance, color="black", linewidth=0.8, linestyle=":")
        figures.say_if_nothing_is_shown(ax, means, ("low", "high"), null=chance)
    return ax


def slopes(table: pd.DataFrame) -> Axes:
    """Each model's intercept against its slope for perplexity (Figure 4).

    `table` is `Effects.slopes`. Left of the dotted line, soft accuracy falls with perplexity.
    """
    slope = "slope for perplexity, per standard deviation"
    shown = table.rename(columns={PERPLEXITY: slope})
    axes = figures.labeled_points(shown, x=slope, y="intercept", label="model")
    axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
    return axes


def _forms(table: pd.DataFrame, ax: Axes, *, competent: Collection[str]) -> Axes:
    gray = table["model"].iloc[0] not in competent
    for _, rows in table.groupby("form", sort=False):
        first = rows.iloc[0]
        valid = first["gold"] == "Yes"
        color = "#b4bac0" if gray else figures.look(MODALITIES.index(first["modality"])).color
        if not gray:
            ends = rows["soft_accuracy_low"], rows["soft_accuracy_high"]
            ax.vlines(rows["perplexity"], *ends, color=color, linewidth=0.8, alpha=0.5)
        ax.plot(
            rows["perplexity"],
            rows["soft_accuracy"],
            color=color,
            linestyle="-" if valid else "--",
            marker=_MARKERS[first["argument_form"]],
            fillstyle="full" if valid else "none",
            linewidth=0.8,
            markersize=5,
        )
    points = list(zip(table["perplexity"], table["soft_accuracy"], strict=True))
    names = ["modality", "argument_form"]
    figures.mark_points(ax, table, points, series=0, number="soft_accuracy", named=names)
    ax.set_xscale("log")
    low, high = float(table["perplexity"].min()), float(table["perplexity"].max())
    ticks = sorted({float(f"{tick:.3g}") for tick in (low, (low * high) ** 0.5, high)})
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.tick_params(axis="x", labelsize=8)
    ax.set_ylim(0, 1)
    counts = table["n"]
    remark = "; not in any mixed model" if gray else ""
    ax.set_xlabel(f"perplexity (n = {counts.min():,} per point{remark})", fontsize=8)
    ax.set_ylabel("soft accuracy", fontsize=9)
    return ax


def _handles() -> list[Line2D]:
    points: dict[str, Any] = {"color": "black", "linestyle": ""}
    return [
        *(
            Line2D([], [], color=figures.look(index).color, label=_NAMES[modality])
            for index, modality in enumerate(MODALITIES)
        ),
        *(
            Line2D(
                [], [], marker=_MARKERS[valid], **points,
                label=f"{ARGUMENT_FORMS[valid]} {valid}, {ARGUMENT_FORMS[fallacy]} {fallacy}",
            )
            for valid, fallacy in (("or", "or_fallacy"), ("mp", "ac"), ("mt", "da"))
        ),
        Line2D([], [], marker="o", label="valid", **points),
        Line2D([], [], marker="o", label="fallacy", fillstyle="none", **points),
    ]  # fmt: skip
