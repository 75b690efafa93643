"""Helpers shared by all studies of papers: sections, published numbers and row order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from interp.extend.figures import decisive_segments, distinct, grouped_bars, panel_a_model
from interp.extend.page import FigureItem, Section, TableItem
from interp.extend.results import SUM, decisive_table, reading_items, training_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def about_pairs(section: Section, **values: str) -> Section:
    """The section, whose numbers lead to the pairs with these values of factors."""
    items = [
        replace(item, pairs={**item.pairs, **values})
        if isinstance(item, TableItem | FigureItem)
        else item
        for item in section.items
    ]
    return replace(section, items=tuple(items))


def choice_section(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    options: pd.DataFrame,
    cluster: str | None,
    *,
    by: Sequence[str] = (),
) -> Section:
    """The accuracy of each reading of the answers, and which differ from chance.

    `answers` and `options` are rows of the tables answers and option_probabilities; those about
    other prompts do not count. `cluster` is the factor whose values group dependent prompts (None:
    pairs), and `by` factors by which to say how well prompts are told apart.
    """
    items = tuple(reading_items(answers, prompts, options, cluster, by=by))
    about = (
        "Does a model know more than it says? A forced choice takes the most probable of the "
        "options, whatever the most probable token is. A calibrated choice takes the option that "
        "gained most over its median in the same phrasing, so that a bias to one option does not "
        "matter. Exploratory."
    )
    if not items:
        about = "No prompt offers options to choose from, so there is no forced choice."
    return Section("Free, forced and calibrated choices", about, items)


def decisive_items(
    ranks: pd.DataFrame,
    cluster: str,
    *,
    units: str,
    name: str,
    title: str,
    by: tuple[str, str],
    outcomes: Sequence[str] = (),
) -> tuple[FigureItem | TableItem, ...]:
    """Whether attributions find the decisive segments, by outcome (in the order of `outcomes`).

    `ranks` has the columns of `finds` (`interp.measurements.attribution.segments`), outcome,
    `cluster` (the units), and one, `by`, for a further table, given with its name in words.
    """
    column, words = by
    by_outcome = decisive_table(in_order(ranks, {"outcome": outcomes}), cluster, ["outcome"])
    summed = by_outcome[by_outcome["reading"].isin([SUM, ""])]
    note = f"clusters: {units}, the unit of the intervals."
    return (
        FigureItem(
            name,
            title,
            lambda: decisive_segments(summed, hue="outcome"),
            f"Scores are summed over tokens. n counts {units}, the unit of the intervals. Length "
            "and position are controls; the line marks chance.",
        ),
        TableItem(name, "By outcome", by_outcome, note),
        TableItem(
            f"{name}_by_{words}", f"By {words}", decisive_table(ranks, cluster, [column]), note
        ),
    )


def bars_by_model(table: pd.DataFrame, *, hue: str, **bars: Any) -> "Axes":
    """One panel of `grouped_bars` for each model, all with the same values of `hue`."""
    groups = distinct(table[hue])
    return panel_a_model(
        table, lambda rows, ax: grouped_bars(rows, hue=hue, groups=groups, ax=ax, **bars)
    )


def trained(places: Mapping[str, str], task: str) -> Iterator[tuple[str, Any]]:
    """Each model that `interp train` made by this task, and what was trained, in order.

    `places` says where each model was found (`StudyFolder.places`).
    """
    for model, place in places.items():
        record = training_of(place)
        if record is not None and record.training.task == task:
            yield model, record.training


def published_table(package: str, file: str) -> pd.DataFrame:
    """A paper's numbers, read from the data/ folder of the study's package."""
    return pd.read_csv(str(files(package) / "data" / file))


def measured_and_published(measured: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Both tables, stacked; the column `source`, after `model`, says which table a row is from."""
    both = pd.concat(
        [measured.assign(source="measured"), published.assign(source="published")],
        ignore_index=True,
    )
    # pandas turns counts into floats if some rows lack them.
    both = both.astype({count: "Int64" for count in _COUNTS if count in both})
    return both[["model", "source", *both.columns.drop(["model", "source"])]]


_COUNTS = ("n", "golden_rules")


def compared_item(name: str, title: str, both: pd.DataFrame, note: str = "") -> TableItem:
    """A table of measured and published numbers; the page shows the columns that have both.

    It omits published rows about sets (column `set`) that were not measured and, if no column has
    both kinds of numbers, all published rows. The file has everything.
    """
    measured = both[both["source"] == "measured"]
    shown = both[both["set"].isin(measured["set"])] if "set" in both else both
    numbers = list(both.select_dtypes("number"))
    counts = shown.groupby("source")[numbers].count()
    shared = [name for name in numbers if len(counts) == 2 and counts[name].all()]
    if not shared:
        why = "No number measured here was published; the file has the published rows."
        shown = measured.dropna(axis="columns", how="all")
        return TableItem(name, title, both, f"{note} {why}".strip(), display=shown)
    left = [name for name in numbers if name not in {*shared, *_COUNTS}]
    notes = {
        note: bool(note),
        "The file also has columns that are only measured or only published.": bool(left),
        "The file also has numbers published for other sets.": len(shown) < len(both),
    }
    shown = shown.drop(columns=left).dropna(subset=shared, how="all")
    return TableItem(name, title, both, " ".join(n for n in notes if notes[n]), display=shown)


def in_order(rows: pd.DataFrame, order: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """The rows by columns in the order of listed values, others last; ties keep their order."""
    places = [
        rows[name].map({value: place for place, value in enumerate(values)}).fillna(len(values))
        for name, values in order.items()
    ]
    return rows.iloc[np.lexsort(places[::-1])] if places else rows
