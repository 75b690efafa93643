"""The first screen of a page: headline numbers for each model, a figure, and quotable sentences.

`glance` makes the first screen of every page, so the pages of studies and single runs begin alike.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from interp.models.organisms import PREFIX
from interp.report.page import FigureItem, Glance, TableItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ["model", "number", "value", "low", "high", "n", "unit", "label", "note"]
"""Columns of headline numbers: the model; the number's name, value and 95% interval; the number of
units and their kind; a label before the value; and the reason for a missing value."""

TITLE = "At a glance"

MOST_NUMBERS = 5
"""Maximum number of headline numbers per model."""

WIDTH = 4.9
"""Width of the figure in inches, such that its labels can still be read on a phone."""


def headline(
    table: pd.DataFrame,
    number: str,
    *,
    value: str,
    n: str,
    unit: str,
    interval: tuple[str, str] = ("low", "high"),
) -> pd.DataFrame:
    """One headline number for each model: rows with `COLUMNS`.

    Args:
        table: one row per model, with the columns named below; the columns `note` and `label` are
            kept.
        number: the number's name, such as "paired accuracy".
        value: column of the values.
        n: column of their counts.
        unit: what is counted, such as "pairs".
        interval: columns with the ends of the 95% intervals, NaN if there is none.
    """
    low, high = interval
    names = {value: "value", low: "low", high: "high", n: "n"}
    rows = table[["model", *names]].rename(columns=names)
    words = {name: table.get(name, pd.Series("", table.index)) for name in ("label", "note")}
    return rows.assign(number=number, unit=unit, **words)[COLUMNS].fillna({"n": 0})


def glance(
    asked: str,
    numbers: pd.DataFrame,
    sentences: Sequence[str],
    *,
    figure: FigureItem | None = None,
    drawn: Sequence[str] | None = None,
) -> Glance:
    """The first screen of a page.

    Args:
        asked: the question, the models, and how much was measured, in one or two sentences.
        numbers: three to five headline numbers for each model, as rows from `headline`.
        sentences: at most five, each with at most 25 words and with its n.
        figure: the figure with the main result; by default, one of the numbers with their
            intervals.
        drawn: the numbers in the default figure, which must share one scale; all if None.
    """
    items: list[TableItem | FigureItem] = []
    if len(numbers):
        wide = _wide(numbers)
        note = "Brackets: 95% intervals. " + _why_blank(numbers)
        table = TableItem("at_a_glance", TITLE, numbers, note.strip(), [(TITLE, wide)], wide)
        items.append(table)
        shown = numbers[numbers["number"].isin(drawn or numbers["number"])].dropna(subset="value")
        if figure is None and len(shown):
            note = "Dots with 95% intervals; the table names the units that n counts."
            figure = FigureItem("at_a_glance", "The same numbers", partial(dots, shown), note)
    if figure is not None:
        items.append(figure)
    legend = organisms(numbers["model"].unique().tolist()) if len(numbers) else ""
    return Glance(asked, tuple(sentences), tuple(items), legend)


def organisms(models: Sequence[str]) -> str:
    """A note on what organisms can show; empty if none of the models is an organism."""
    made = [model for model in models if model.startswith(PREFIX)]
    which = "All models here are organisms" if len(made) == len(models) else f"{PREFIX}…: organisms"
    return (
        f"{which}, small models trained for this project with known causes planted in them. They "
        "show whether a method finds these causes, but nothing about published models."
        if made
        else ""
    )


def extremes(numbers: pd.DataFrame, number: str) -> str:
    """A sentence about the highest and lowest values or, if they are labeled, about the largest.

    If several models share an extreme value, the sentence counts them instead of naming them. It
    has at most 25 words if the name of the headline number has at most five.

    Args:
        numbers: rows from `headline`.
        number: the name of one of the numbers.
    """
    rows = numbers[numbers["number"] == number].dropna(subset="value")
    if rows.empty:
        asked = int(numbers.loc[numbers["number"] == number, "n"].max() or 0)
        return f"{_begin(number)} could not be computed for any model; n = {asked:,}."
    if (rows["label"] != "").any():  # such as the place of an effect; report only the largest value
        most = rows.iloc[int(rows["value"].abs().argmax())].to_dict()
        n = f"n = {int(most['n']):,} {most['unit']}"
        return f"{_begin(number)}: {most['model']}, {_cell(most)}; {n}."
    rows = rows.sort_values("value", kind="stable")
    counts = sorted({int(rows["n"].iloc[0]), int(rows["n"].iloc[-1])})
    n = f"n = {' to '.join(f'{count:,}' for count in counts)} {rows['unit'].iloc[0]}"
    if len(rows) == 1:
        return (
            f"{_begin(number)} is {_cell(rows.iloc[0].to_dict())} for {rows['model'].iloc[0]}; {n}."
        )
    value = rows["value"].to_numpy(dtype=float)
    if np.isclose(value[0], value[-1]):
        return f"{_begin(number)} is {_short(value[-1])} for all {len(rows)} models; {n}."
    lowest, highest = (_those_at(rows[np.isclose(value, value[end])]) for end in (0, -1))
    return f"{_begin(number)} is highest for {highest}, and lowest for {lowest}; {n}."


def _those_at(rows: pd.DataFrame) -> str:
    """The model with an extreme value, or how many models share it, and the value."""
    if len(rows) > 1:
        return f"{len(rows)} models, {_short(rows['value'].iloc[0])}"
    return f"{rows['model'].iloc[0]}, {_cell(rows.iloc[0].to_dict())}"


def with_interval(value: float, low: float, high: float, *, decimals: int = 2) -> str:
    """A number with its interval, such as "0.83 [0.76, 0.89]"; empty without a value."""
    if not np.isfinite(value):
        return ""
    number, *ends = (_short(one, decimals) for one in (value, low, high))
    return f"{number} [{', '.join(ends)}]" if np.isfinite([low, high]).all() else number


def dots(numbers: pd.DataFrame) -> "Axes":
    """The numbers as dots with intervals: one row per model and one color per number."""
    from interp.report.figures.points import interval_points
    from interp.report.figures.style import distinct, new_axes, row_height

    rows = numbers.assign(
        model=numbers["model"].str.replace("/", "/\n", n=1), n=numbers["n"].astype(int)
    )
    groups, names = rows["number"].nunique(), distinct(rows["model"])
    height = len(names) * row_height(names, max(0.62, 0.2 * groups)) + 1.0 + 0.2 * groups
    ax = interval_points(
        rows, x="value", y="model", hue="number", n="n", interval=("low", "high"),
        ax=new_axes(width=WIDTH, height=height),
    )  # fmt: skip
    ends = rows[["value", "low", "high"]].to_numpy(dtype=float)
    if np.nanmin(ends) >= 0 and np.nanmax(ends) <= 1:
        ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("")
    return ax


def _wide(numbers: pd.DataFrame) -> pd.DataFrame:
    """One row per model and one column per number, as text."""
    models = numbers["model"].drop_duplicates()
    wide = pd.DataFrame({"model": models.to_numpy()})
    for number, rows in numbers.groupby("number", sort=False):
        counts = rows.loc[rows["value"].notna(), "n"].astype(int).unique()
        alike, unit = len(counts) == 1, rows["unit"].iloc[0]
        cells = {
            row["model"]: _cell(row)
            + (f" ({int(row['n']):,})" * (not alike and pd.notna(row["value"])))
            for row in rows.to_dict("records")
        }
        # No line break within "n = 12".
        n = f"n = {counts[0]:,}".replace(" ", "\N{NO-BREAK SPACE}") if alike else ""
        heading = f"{number}, {n} {unit}" if alike else f"{number} (n {unit})"
        wide[heading] = [cells.get(model, "") for model in models]
    return wide


def _why_blank(numbers: pd.DataFrame) -> str:
    """The reasons why cells are blank, each given once."""
    blank = numbers[numbers["value"].isna()]
    reasons = []
    for note, rows in blank.groupby(blank["note"].replace("", "not measured"), sort=False):
        models = rows["model"].unique()
        what = rows["number"].unique()
        named = ", ".join(models) if len(models) <= 3 else f"{len(models)} models"
        if len(what) < numbers["number"].nunique():
            named += f" ({', '.join(what)})"
        reasons.append(f"{named}: {str(note).rstrip('.')}")
    return f"Blank: {'; '.join(reasons)}." if reasons else ""


def _cell(row: Mapping[Hashable, object]) -> str:
    """A value with its interval, preceded by its label."""
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    return f"{row['label']} {with_interval(value, low, high)}".strip()


def _short(number: float, decimals: int = 2) -> str:
    return f"{round(number, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def _begin(words: str) -> str:
    return words[:1].upper() + words[1:]
