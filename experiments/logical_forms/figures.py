"""The figures of the study of LogicalForms (paper, Figures 1 and 3 to 6)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from interp.report.figures import labelled_points, panel_a_model
from interp.report.style import house_style, look, new_axes
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES

_SYMBOLS = {"none": "no modality", "box": "□", "diamond": "◇", **ARGUMENT_FORMS}


def forms_over_perplexity(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Soft accuracy over perplexity, a panel per model: a point for each form and set of questions.

    Points of one form are joined, from the questions to their nonsense mirror (Figure 5); with
    one set only there are points alone (Figure 1). `table` is rows of `tables.by_form(results)`;
    with `ax` it must hold one model.
    """
    with house_style():
        if ax is not None:
            return _forms(table, ax)
        return panel_a_model(table, _forms, share_x=False, handles=_handles())


def estimated_means(table: pd.DataFrame, *, response: str, ax: Axes | None = None) -> Axes:
    """Estimated marginal means with 95% intervals, a row per level (Figures 3 and 6).

    `table` is `Effects.means`; `response` names the dependent variable in words.
    """
    with house_style():
        ax = ax or new_axes(height=0.5 * len(table) + 1.2)
        factors = table["factor"].drop_duplicates().tolist()
        numbers = table[["mean", "low", "high"]].to_numpy(dtype=float)
        for place, (factor, row) in enumerate(zip(table["factor"], numbers, strict=True)):
            style = look(factors.index(factor))
            mean, low, high = row.tolist()
            half = [[mean - low], [high - mean]]
            ax.errorbar(mean, place, xerr=half, fmt=style.marker, color=style.colour)
        labels = [
            f"{' '.join(_SYMBOLS.get(word, word) for word in level.split())}  (n = {n:,})"
            for level, n in zip(table["level"], table["n"], strict=True)
        ]
        ax.set_yticks(range(len(table)), labels)
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.axvline(0.5, color="black", linewidth=0.8, linestyle=":")
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(f"estimated mean {response}")
        return ax


def random_effects(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Each model's random intercept over its random slope of perplexity (Figure 4).

    `table` is the random effects of a mixed model.
    """
    shown = table.rename(
        columns={
            "relative_perplexity": "random slope of perplexity, per standard deviation",
            "intercept": "random intercept",
        }
    ).assign(model=table["model"].str.rpartition("/")[2])
    slope, intercept = shown.columns.drop("model")[::-1]
    return labelled_points(shown, x=slope, y=intercept, label="model", ax=ax)


def planted_and_measured(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Measured over planted share of Yes, a point per form; on the dotted line they agree.

    `table` is `tables.planted_and_measured(results)` of one model.
    """
    with house_style():
        ax = ax or Figure(figsize=(5.5, 4.6)).add_subplot()
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
        for index, modality in enumerate(MODALITIES):
            rows = table[table["modality"] == modality]
            ax.plot(
                rows["planted_yes"],
                rows["measured_yes"],
                linestyle="",
                marker=look(index).marker,
                color=look(index).colour,
                label=_SYMBOLS[modality],
            )
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"planted share of Yes (n = {len(table)} forms)")
        ax.set_ylabel("measured share of Yes")
        ax.legend()
        return ax


def _forms(table: pd.DataFrame, ax: Axes) -> Axes:
    for _, rows in table.groupby("form", sort=False):
        style = look(MODALITIES.index(rows["modality"].iloc[0]))
        valid = rows["gold"].iloc[0] == "Yes"
        ax.plot(
            rows["perplexity"],
            rows["soft_accuracy"],
            color=style.colour,
            linestyle="-" if valid else "--",
            marker="o" if valid else "x",
            linewidth=0.9,
            markersize=4.5,
        )
    ax.set_xscale("log")
    narrow = table["perplexity"].max() < 20 * table["perplexity"].min()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=5))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="x", labelsize=8)
    ax.set_ylim(0, 1)
    counts = table["n"]
    ax.set_xlabel(f"mean perplexity (n = {counts.min():,} a point)", fontsize=9)
    ax.set_ylabel("soft accuracy", fontsize=9)
    return ax


def _handles() -> list[Line2D]:
    """What colours and markers mean."""
    colours = [
        Line2D([], [], color=look(index).colour, label=_SYMBOLS[modality])
        for index, modality in enumerate(MODALITIES)
    ]
    return [
        *colours,
        Line2D([], [], color="black", marker="o", linestyle="-", label="valid"),
        Line2D([], [], color="black", marker="x", linestyle="--", label="fallacy"),
    ]
