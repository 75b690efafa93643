"""The first screen of every page: headline numbers for each model, a figure, quotable sentences."""

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import Caution, void_models
from interp.models.packaged import GRAFTS, ORGANISMS
from interp.report import page
from interp.statistics.clusters import FEWEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ["model", "number", "value", "low", "high", "n", "unit", "label", "note"]
"""Columns of headline numbers: the model; the number's name, value and 95% interval; the number of
units and their kind (a plural); a label before the value; and the reason for a missing value or
interval."""

Difference = tuple[float, float, float]
"""A difference and both ends of its 95% interval."""


@dataclass(frozen=True)
class Opening:
    """What a measurement's first screen is made of."""

    numbers: pd.DataFrame
    """Three to five headline numbers of each model, as rows from `headline`."""
    sentences: Sequence[str] = ()
    """Findings before the sentences about the numbers."""
    differences: Mapping[str, Difference] = field(default_factory=dict)
    """The differences of two models' headline numbers, the first minus the second, by number."""
    extent: str = ""
    """How much was measured, after the measurement's question."""
    picture: page.PictureItem | None = None
    """The picture that the measurement is known for."""
    figure: page.FigureItem | None = None
    """The figure with the main result; if None, the headline numbers are drawn."""


TITLE = "At a glance"

MOST_NUMBERS = 5
"""Maximum number of headline numbers per model."""

ACCURACY = r"accuracy$|^accuracy |recognized$"
"""Names of headline numbers that measure how often a model answers correctly, such as "paired
accuracy" and "accuracy after its thought"; "best accuracy at last token" is that of a probe."""

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

    The table has one row per model; its columns `note` and `label` are kept. Without a note,
    `clusters` (or else `n`) tells why an interval is missing. `unit` is what is counted, such as
    "pairs".
    """
    low, high = interval
    names = {value: "value", low: "low", high: "high", n: "n"}
    rows = table[["model", *names]].rename(columns=names)
    words = {name: table.get(name, pd.Series("", table.index)) for name in ("label", "note")}
    clusters = table.get("clusters", rows["n"]).fillna(0)
    unsaid = _without(rows) & rows["value"].notna() & (words["note"] == "")
    few = f"fewer than {FEWEST} clusters"
    why = clusters.map(lambda count: few if count < FEWEST else "clusters that do not differ")
    words["note"] = words["note"].mask(unsaid, why)
    return rows.assign(number=number, unit=unit, **words)[COLUMNS].fillna({"n": 0})


def glance(
    question: str,
    numbers: pd.DataFrame,
    sentences: Sequence[str],
    *,
    picture: page.PictureItem | None = None,
    figure: page.FigureItem | None = None,
    drawn: Sequence[str] | None = None,
    cautions: Sequence[Caution] = (),
) -> page.Glance:
    """The first screen of a page.

    There are three to five headline numbers (`headline`) and at most five sentences, each of at
    most 25 words with its n. Without a figure, one shows the numbers (those in `drawn`, which must
    share one scale) with their intervals, unless a picture already shows the only model.
    """
    items: list[page.TableItem | page.FigureItem | page.PictureItem] = []
    if len(numbers):
        wide = _wide(numbers)
        note = " ".join(filter(None, [_brackets(numbers), _why_blank(numbers)]))
        table = page.TableItem("at_a_glance", TITLE, numbers, note, [(TITLE, wide)], wide)
        items.append(table)
        shown = numbers[numbers["number"].isin(drawn or numbers["number"])].dropna(subset="value")
        pictured = picture is not None and numbers["model"].nunique() == 1
        if figure is None and len(shown) and not pictured:
            note = f"{dots_with(shown)}; the table names the units that n counts."
            figure = page.FigureItem("at_a_glance", "The same numbers", partial(dots, shown), note)
    items += [item for item in (picture, figure) if item is not None]
    legend = organisms(numbers["model"].unique().tolist()) if len(numbers) else ""
    return page.Glance(question, tuple(sentences), tuple(items), legend, tuple(cautions))


def quotable(
    numbers: pd.DataFrame, cautions: Sequence[Caution], names: Collection[str] | None = None
) -> pd.DataFrame:
    """The headline numbers, without accuracies of models that do not read their prompts.

    `names` are the numbers that measure how often answers are right; by default, those whose names
    match `ACCURACY`.
    """
    reasons = numbers["model"].map(void_models(cautions))
    judged = numbers["number"].str.contains(ACCURACY)
    if names is not None:
        judged = numbers["number"].isin(names)
    void = judged & reasons.notna() & numbers["value"].notna()
    kept = {name: numbers[name].mask(void) for name in ("value", "low", "high")}
    label, note = numbers["label"].mask(void, ""), numbers["note"].mask(void, reasons)
    return numbers.assign(**kept, label=label, note=note)


def named_numbers(every: pd.DataFrame, numbers: pd.DataFrame) -> list[str]:
    """The first headline numbers with a value of some model, or of none for another reason."""
    names = numbers["number"].unique()
    lost = every["value"].notna().groupby(every["number"]).any()
    valued = numbers["value"].notna().groupby(numbers["number"]).any()
    return [str(name) for name in names if valued[name] or not lost[name]][: page.MOST_SENTENCES]


def organisms(models: Sequence[str]) -> str:
    """A note on what organisms and grafts can show; empty if none of the models is one."""
    notes = []
    made = [model for model in models if model.startswith(ORGANISMS.prefix)]
    if made:
        all_of_them = len(made) == len(models)
        which = "All models here are" if all_of_them else f"{ORGANISMS.prefix}…:"
        notes.append(
            f"{which} organisms, small models trained for this project with known causes planted "
            "in them. They show whether a method finds these causes, but nothing about published "
            "models."
        )
    if any(model.startswith(GRAFTS.prefix) for model in models):
        notes.append(
            f"{GRAFTS.prefix}…: published models with an adapter that plants a known cause. They "
            "show whether a method finds this cause, but not how the unmodified models answer."
        )
    return " ".join(notes)


def extremes(
    numbers: pd.DataFrame, number: str, differences: Mapping[str, Difference] = MappingProxyType({})
) -> str:
    """A sentence about a number of all models, which names extremes only if they lie apart.

    With two models, it gives both values and, if known, their difference. With more, it names the
    highest and the lowest if their intervals do not overlap, and otherwise gives only the range. If
    several models share an extreme value, the sentence counts them instead of naming them. It has
    at most 25 words if the name of the headline number has at most five. Differences are those of
    the first model minus the second.
    """
    rows = numbers[numbers["number"] == number].dropna(subset="value")
    if rows.empty:
        most = int(numbers.loc[numbers["number"] == number, "n"].max() or 0)
        return f"{_begin(number)} could not be computed for any model; n = {most:,}."
    n = n_units(int(rows["n"].min()), int(rows["n"].max()), rows["unit"].iloc[0])
    if (rows["label"] != "").any():  # such as the place of an effect
        most = page.MOST_WORDS - len(f"{number} {n}".split())
        return f"{_begin(number)}{_labeled(rows, most)}; {n}."
    value = rows["value"].to_numpy(dtype=float)
    if len(rows) == 1:
        finding = _of_model(rows)
    elif np.isclose(value, value[0]).all():
        finding = f"{_short(value[-1])} for all {len(rows)} models"
    elif len(rows) == 2:
        finding = _both(rows, differences.get(number))
    else:
        finding = _ends(rows.sort_values("value", kind="stable"))
    return f"{_begin(number)} is {finding}; {n}."


def n_units(least: int, most: int, units: str) -> str:
    """A number of units or their range, such as "n = 1 pair" and "n = 5–24 theories"."""
    unit = re.sub("s$", "", re.sub("ies$", "ys", units)) if least == most == 1 else units
    return f"n = {'–'.join(f'{count:,}' for count in sorted({least, most}))} {unit}"


def _labeled(rows: pd.DataFrame, most_words: int) -> str:
    """Each model's labeled value or, in too many words, how large the values are."""
    labeled = "; ".join(f"{row['model']}, {_cell(row)}" for row in rows.to_dict("records"))
    if len(rows) == 1 or len(labeled.split()) <= most_words:
        return f": {labeled}"
    low, high = (_short(size) for size in rows["value"].abs().agg(["min", "max"]))
    return f" has a size of {low} to {high} for {len(rows)} models"


def _ends(rows: pd.DataFrame) -> str:
    """The highest and lowest of sorted values, or only their range if their intervals overlap."""
    value = rows["value"].to_numpy(dtype=float)
    if not rows["low"].iloc[-1] > rows["high"].iloc[0]:
        why = "overlap" if rows["low"].notna().all() else "are unknown"
        return (
            f"{_short(value[0])} to {_short(value[-1])} for {len(rows)} models, whose intervals "
            f"{why}"
        )
    lowest, highest = (_those_at(rows[np.isclose(value, value[end])]) for end in (0, -1))
    return f"highest for {highest}, lowest for {lowest}"


def _of_model(row: pd.DataFrame) -> str:
    return f"{_cell(row.iloc[0].to_dict())} for {row['model'].iloc[0]}"


def _both(rows: pd.DataFrame, difference: Difference | None) -> str:
    if difference is None or not np.isfinite(difference).all():
        return f"{_of_model(rows[:1])} and {_of_model(rows[1:])}"
    values = " and ".join(
        f"{_short(value)} for {model}"
        for model, value in zip(rows["model"], rows["value"], strict=True)
    )
    return f"{values}, difference {with_interval(*difference)}"


def _those_at(rows: pd.DataFrame) -> str:
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
    from interp.report.figures.bars_and_points import interval_points
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
    """One row per model, one column per number that some model has, as text; or the reasons."""
    models = numbers["model"].drop_duplicates()
    wide = pd.DataFrame({"model": models.to_numpy()})
    if numbers["value"].isna().all():
        reasons = numbers.assign(note=numbers["note"].replace("", _NOT_MEASURED))
        joined = reasons.groupby("model", sort=False)["note"].agg(
            lambda notes: "; ".join(notes.unique())
        )
        return wide.assign(**{"why it has no number": joined.to_numpy()})
    for number, rows in numbers.groupby("number", sort=False):
        counts = rows.loc[rows["value"].notna(), "n"].astype(int).unique()
        if not len(counts):
            continue
        alike, unit = len(counts) == 1, rows["unit"].iloc[0]
        cells = {
            row["model"]: _cell(row)
            + (f" ({int(row['n']):,})" * (not alike and pd.notna(row["value"])))
            for row in rows.to_dict("records")
        }
        # No line break within "n = 12".
        n = n_units(int(counts[0]), int(counts[0]), unit).replace(" ", "\N{NO-BREAK SPACE}", 2)
        heading = f"{number}, {n}" if alike else f"{number} (n {unit})"
        wide[heading] = [cells.get(model, "") for model in models]
    return wide


_NOT_MEASURED = "not measured"
"""Why a number without a note of its own may be missing."""


_KINDS_OF_NOTES = re.compile("^(not tested|no interval|interval undefined): ")
"""How notes of tables begin, which the words before them on the first screen repeat."""


def dots_with(numbers: pd.DataFrame) -> str:
    """What the dots of a figure show: intervals, if any number has one."""
    return "Dots without intervals" if _without(numbers).all() else "Dots with 95% intervals"


def _brackets(numbers: pd.DataFrame) -> str:
    """What brackets hold, and the reasons why values have none."""
    shown = numbers.dropna(subset="value")
    bare = shown[_without(shown)]
    # These notes are parts of a list, whose parts semicolons separate.
    notes = bare["note"].str.replace(_KINDS_OF_NOTES, "", regex=True).str.replace("; ", ", ")
    bare = bare.assign(note=notes)
    meaning = "Brackets: 95% intervals." if len(bare) < len(shown) else ""
    return " ".join(filter(None, [meaning, _why("No brackets", bare, numbers)]))


def _without(numbers: pd.DataFrame) -> pd.Series:
    return numbers[["low", "high"]].isna().any(axis="columns")


def _why_blank(numbers: pd.DataFrame) -> str:
    """The reasons, each given once, why numbers have no column and why other cells are blank."""
    valued = numbers.groupby("number", sort=False)["value"].transform("count") > 0
    if not valued.any():
        return _why(f"No {', '.join(numbers['number'].unique())}", numbers, numbers)
    blank = numbers["value"].isna()
    parts = (("No column", numbers[~valued]), ("Blank", numbers[valued & blank]))
    return " ".join(filter(None, (_why(what, rows, numbers) for what, rows in parts)))


def _why(what: str, rows: pd.DataFrame, numbers: pd.DataFrame) -> str:
    """The reasons in the rows' notes, each given once; empty without rows."""
    reasons = []
    for note, noted in rows.groupby(rows["note"].replace("", _NOT_MEASURED), sort=False):
        models, names = noted["model"].unique(), noted["number"].unique()
        every_model = len(models) == numbers["model"].nunique()
        every_number = len(names) == numbers["number"].nunique()
        named = ", ".join(models) if len(models) <= 3 else f"{len(models)} models"
        if every_model and not every_number:
            named = ", ".join(names)
        elif not every_number:
            named += f" ({', '.join(names)})"
        named = "" if every_model and every_number else f"{named}: "
        reasons.append(f"{named}{str(note).rstrip('.')}")
    return f"{what}: {'; '.join(reasons)}." if reasons else ""


def _cell(row: Mapping[Hashable, object]) -> str:
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    return f"{row['label']} {with_interval(value, low, high)}".strip()


def _short(number: float, decimals: int = 2) -> str:
    return f"{round(number, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def _begin(words: str) -> str:
    return words[:1].upper() + words[1:]
