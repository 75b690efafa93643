"""The figures of the study of LogicalForms (paper, Figures 1 and 3 to 6)."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator
from matplotlib.transforms import offset_copy

from interp.report.figures.points import labeled_points
from interp.report.figures.style import (
    QUIET,
    Picture,
    house_style,
    look,
    mark_points,
    new_axes,
    panel_a_model,
)
from interp.report.formatting import number_text
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
    "modality": "Modality",
    "argument_form": "Argument form",
    "cell": "Modality and form",
}
"""Levels and factors in words."""

_MARKERS = {"or": "o", "or_fallacy": "o", "mp": "^", "ac": "^", "mt": "s", "da": "s"}
"""A theorem and its fallacy have the same marker, filled for the theorem, hollow for the
fallacy."""

_MOST_BRACKETS = 7
"""Maximum number of tests drawn next to the levels of a factor; more would cover the points."""

_BRACKET = 54
"""Width of a bracket and its p, in typographic points."""

_OUTLIER = 0.08
"""A form is labeled if its planted and measured shares of Yes differ by more than this."""


def forms_over_perplexity(table: pd.DataFrame, *, competent: Collection[str]) -> Axes:
    """Soft accuracy against perplexity, by model, with one point per form and set of questions.

    A line joins the two points of a form, from the questions to their nonsense mirror (Figure 5).
    With only one set of questions, there are no lines (Figure 1). `table` has rows of
    `tables.by_form(results)`. Models that are not `competent` are gray.
    """

    def draw(rows: pd.DataFrame, axes: Axes) -> Axes:
        return _forms(rows, axes, gray=rows["model"].iloc[0] not in competent)

    with house_style():
        return panel_a_model(table, draw, handles=_handles())


def estimated_means(
    table: pd.DataFrame,
    *,
    response: str,
    tests: pd.DataFrame | None = None,
    chance: float | None = None,
) -> Axes:
    """Means with 95% intervals, one row per level (Figures 3 and 6).

    `table` is `Contrasts.means` or `Effects.means`; raw means of the latter are hollow points next
    to the adjusted means. Brackets show p of `tests` for factors with few tests. `chance`, the mean
    of random answers, is a dotted line.
    """
    with house_style():
        factors = table["factor"].drop_duplicates().tolist()
        places, labels = _rows_of_levels(table, factors)
        ax = new_axes(width=9.5, height=0.36 * max(labels) + 1.6)
        adjusted = "raw_mean" in table
        columns = ["mean", "low", "high", "raw_mean" if adjusted else "mean"]
        numbers = table[columns].to_numpy(dtype=float)
        heights = list(zip(table["mean"], places.values(), strict=True))
        mark_points(ax, table, heights, series=0, number="mean", named=["factor", "level"])
        for place, factor, row in zip(places.values(), table["factor"], numbers, strict=True):
            style = look(factors.index(factor))
            mean, low, high, raw = row.tolist()
            half = [[mean - low], [high - mean]]
            ax.errorbar(mean, place, xerr=half, fmt=style.marker, color=style.color, capsize=2)
            if adjusted:
                ax.plot(raw, place, style.marker, color=style.color, fillstyle="none", markersize=9)
        ax.set_yticks(list(labels), list(labels.values()))
        ax.set_ylim(max(labels) + 0.7, -0.7)
        for factor in factors:
            head = min(place for (name, _), place in places.items() if name == factor) - 1
            ax.text(
                -0.01, head, _NAMES.get(factor, factor), transform=ax.get_yaxis_transform(),
                ha="right", va="center", fontweight="bold", fontsize=9,
            )  # fmt: skip
        if chance is not None:
            ax.axvline(chance, color="black", linewidth=0.8, linestyle=":")
        if tests is not None:
            _brackets(ax, tests, places)
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(
            f"mean {response}: adjusted, with 95% interval (filled), and raw (hollow)"
            if adjusted
            else f"mean {response}, with 95% interval"
        )
        return ax


def slopes(table: pd.DataFrame, *, covariate: str) -> Axes:
    """Each model's intercept against its slope for perplexity (Figure 4).

    `table` is `Effects.slopes`. Left of the dotted line, soft accuracy falls with perplexity.
    """
    slope = "slope for perplexity, per standard deviation"
    shown = table.rename(columns={covariate: slope})
    axes = labeled_points(shown, x=slope, y="intercept", label="model")
    axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
    return axes


def planted_and_measured(table: pd.DataFrame) -> Axes:
    """The measured against the planted share of Yes, by form; they are equal on the dotted line.

    `table` is `tables.planted_and_measured(results)` of one model. Filled points are valid forms.
    """
    with house_style():
        ax = Picture(figsize=(6.4, 5.0)).add_subplot()
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
        for row in table.to_dict("records"):
            style = look(MODALITIES.index(row["modality"]))
            measured = row["measured_yes"]
            half = [[measured - row["measured_low"]], [row["measured_high"] - measured]]
            ax.errorbar(
                row["planted_yes"],
                measured,
                yerr=np.nan_to_num(half),
                marker=style.marker,
                color=style.color,
                fillstyle="full" if row["gold"] == "Yes" else "none",
                elinewidth=0.8,
            )
        points = list(zip(table["planted_yes"], table["measured_yes"], strict=True))
        mark_points(ax, table, points, series=0, number="measured_yes", named=["formula"])
        _name_outliers(ax, table)
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"planted share of Yes (n = {len(table)} forms)")
        ax.set_ylabel("measured share of Yes, with 95% interval")
        ax.legend(handles=[*_modality_handles(markers=True), *_validity_handles()])
        return ax


def _name_outliers(ax: Axes, table: pd.DataFrame) -> None:
    """Label the forms furthest from the dotted line, below their points or right of the axes.

    A label takes up about 0.25 by 0.035 of the axes; labels that would cover others are omitted.
    """
    order = table["difference"].abs().sort_values(ascending=False).index
    named: list[tuple[float, float]] = []
    for row in table.loc[order].to_dict("records"):
        x, y = row["planted_yes"], row["measured_yes"]
        hidden = any(abs(x - a) < 0.25 and abs(y - b) < 0.035 for a, b in named)
        if abs(row["difference"]) > _OUTLIER and not hidden:
            named.append((x, y))
            beside = x > 0.7
            ax.annotate(
                row["form"],
                (x, y),
                xytext=(1.02, y) if beside else (6, -8),
                textcoords="data" if beside else "offset points",
                va="center" if beside else "baseline",
                fontsize=7,
                arrowprops={"arrowstyle": "-", "linewidth": 0.4} if beside else None,
            )


def _rows_of_levels(
    table: pd.DataFrame, factors: list[str]
) -> tuple[dict[tuple[str, str], int], dict[int, str]]:
    """Each level's row on the y axis, with an empty row above each factor, and the rows' labels."""
    places: dict[tuple[str, str], int] = {}
    labels: dict[int, str] = {}
    for row in table.to_dict("records"):
        place = len(places) + factors.index(row["factor"]) + 1
        places[row["factor"], row["level"]] = place
        label = _NAMES.get(row["level"]) or " ".join(
            _NAMES.get(word, word) for word in row["level"].split()
        )
        extrapolated = " (extrapolated)" if row.get("note") else ""
        labels[place] = f"{label}{extrapolated}  n = {row['n']:,}"
    return places, labels


def _brackets(ax: Axes, tests: pd.DataFrame, places: Mapping[tuple[str, str], int]) -> None:
    """Draw brackets with p-values for pairs of levels, to the right of the axes."""
    for factor, rows in tests.groupby("factor", sort=False):
        if len(rows) > _MOST_BRACKETS:
            continue
        drawn = [
            (*sorted((places[str(factor), first], places[str(factor), second])), float(p))
            for first, second, p in rows[["first", "second", "p_holm"]].to_numpy()
        ]
        ends: list[float] = []
        for top, bottom, p in sorted(drawn):
            column = next((c for c, end in enumerate(ends) if end < top), len(ends))
            ends[column : column + 1] = [bottom]
            _bracket(ax, column, (float(top), float(bottom)), p)


def _bracket(ax: Axes, column: int, ends: tuple[float, float], p: float) -> None:
    """Draw the bracket between two levels, with its p, in a column to the right of the axes."""
    figure = ax.get_figure(root=True)
    edge, text = ax.get_yaxis_transform(), number_text(p, p_value=True)
    line, label = (
        offset_copy(edge, figure, x=across + _BRACKET * column, units="points")
        for across in (10, 14)
    )
    ax.plot([1, 1], ends, color=QUIET, marker="_", linewidth=1, transform=line, clip_on=False)
    ax.text(
        1,
        sum(ends) / 2,
        f"p {text}" if "<" in text else f"p = {text}",
        transform=label,
        va="center",
        fontsize=7,
    )


def _forms(table: pd.DataFrame, ax: Axes, *, gray: bool) -> Axes:
    for _, rows in table.groupby("form", sort=False):
        first = rows.iloc[0]
        valid = first["gold"] == "Yes"
        ax.plot(
            rows["perplexity"],
            rows["soft_accuracy"],
            color="#b4bac0" if gray else look(MODALITIES.index(first["modality"])).color,
            linestyle="-" if valid else "--",
            marker=_MARKERS[first["argument_form"]],
            fillstyle="full" if valid else "none",
            linewidth=0.8,
            markersize=5,
        )
    points = list(zip(table["perplexity"], table["soft_accuracy"], strict=True))
    names = ["modality", "argument_form"]
    mark_points(ax, table, points, series=0, number="soft_accuracy", named=names)
    if not gray:
        _whiskers(table, ax)
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


def _whiskers(table: pd.DataFrame, ax: Axes) -> None:
    """The intervals around the points."""
    for modality, rows in table.groupby("modality", observed=True):
        ends = rows[["soft_accuracy_low", "soft_accuracy_high"]].to_numpy(dtype=float).T
        ax.vlines(
            rows["perplexity"],
            *ends,
            color=look(MODALITIES.index(str(modality))).color,
            linewidth=0.8,
            alpha=0.5,
        )


def _modality_handles(*, markers: bool = False) -> list[Line2D]:
    return [
        Line2D(
            [], [], color=look(index).color, linestyle="" if markers else "-",
            marker=look(index).marker if markers else "", label=_NAMES[modality],
        )
        for index, modality in enumerate(MODALITIES)
    ]  # fmt: skip


def _validity_handles() -> list[Line2D]:
    return [
        Line2D([], [], color="black", marker="o", linestyle="", label="valid"),
        Line2D([], [], color="black", marker="o", linestyle="", fillstyle="none", label="fallacy"),
    ]


def _handles() -> list[Line2D]:
    """The legend of colors and markers."""
    markers = [
        Line2D(
            [], [], color="black", marker=_MARKERS[valid], linestyle="",
            label=f"{ARGUMENT_FORMS[valid]} {valid}, {ARGUMENT_FORMS[fallacy]} {fallacy}",
        )
        for valid, fallacy in (("or", "or_fallacy"), ("mp", "ac"), ("mt", "da"))
    ]  # fmt: skip
    return [*_modality_handles(), *markers, *_validity_handles()]
