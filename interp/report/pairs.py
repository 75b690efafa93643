"""The content of a browser of pairs: what its list is filtered and sorted by, and a pair's panels.

A measurement contributes to the pairs of its results by `Result.browser`, as plain data: the page
draws each kind of panel itself (templates/panels.js) and shows texts as texts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import pandas as pd

from interp.statistics.summaries import grouped

Labels = Mapping[str, str]
"""What distinguishes panels or numbers of one name, such as the model and the method, by column."""

_NONE: Labels = MappingProxyType({})


@dataclass(frozen=True)
class Panel:
    """A part of what is shown for a pair."""

    title: str
    """Panels with the same title are shown in one place, where a reader chooses between their
    labels."""
    of: Labels
    """What distinguishes this panel from others with its title."""
    note: str = field(default="", kw_only=True)
    """How to read it: units, signs, and what is left out."""


@dataclass(frozen=True)
class Text:
    """A text in pieces, such as tokens or sentences, each with a number."""

    name: str
    """What the text is, such as the side of its prompt."""
    pieces: Sequence[str]
    values: Sequence[float]
    """A number for each piece; NaN if it has none."""
    labels: Sequence[str] = ()
    """A label for each piece, such as its segment; empty labels are not shown."""


@dataclass(frozen=True)
class Shaded(Panel):
    """Texts whose pieces are shaded by their numbers."""

    texts: Sequence[Text]


@dataclass(frozen=True)
class Bars(Panel):
    """Bars around zero: for each group, such as a side, labels with their numbers."""

    groups: Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True)
class Grid(Panel):
    """A grid of numbers, such as effects by layer and role, or readings by layer and token."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    """A number for each cell, row by row; NaN if it has none."""
    words: Sequence[Sequence[str]] = ()
    """A text for each cell, such as a predicted token; cells show their numbers without texts."""


@dataclass(frozen=True)
class Table(Panel):
    """Rows of texts and numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | float]]


@dataclass(frozen=True)
class Number:
    """A number of each pair, by which the list can be sorted, and to which tables lead."""

    name: str
    """What the number is, such as "effect in logits"."""
    of: Labels
    """What distinguishes it from others of this name: a row of a table with these values in columns
    of these names leads to the pairs, sorted by it."""
    values: Mapping[str, float]
    """The number of each pair that has one, by pair_id."""
    headline: str = ""
    """The name of the headline number that is its mean, if any."""


Panels = Callable[[pd.DataFrame], Iterable[tuple[str, Panel]]]
"""A function from rows of the prompts table, of whole pairs, to the panels of these pairs, each
with its pair_id."""


@dataclass(frozen=True)
class Browser:
    """All pairs of a page."""

    prompts: pd.DataFrame
    answers: pd.DataFrame
    """The answers of all models, as from `interp.results.given.judged_answers`."""
    panels: Panels
    numbers: Sequence[Number] = ()
    cluster: str | None = None
    """The factor whose values group dependent prompts, if any."""
    columns: bool = True
    """Whether columns of the page's tables are about the factors of their names, as in studies of
    some systems. In other tables, such a column is another thing that a user's factor is named
    like, such as a model or a method.
    """

    def beside(self, other: "Browser") -> "Browser":
        """These pairs, with the panels and numbers of another measurement of them as well."""
        return replace(
            self,
            panels=lambda prompts: chain(self.panels(prompts), other.panels(prompts)),
            numbers=(*self.numbers, *other.numbers),
        )


def panel_data(panel: Panel) -> dict[str, Any]:
    """A panel as JSON data; numbers have four significant digits, and missing ones are None."""
    data: dict[str, Any] = {
        "kind": type(panel).__name__.lower(),
        "title": panel.title,
        "of": {name: str(value) for name, value in panel.of.items()},
        "note": " ".join(panel.note.split()),
    }
    if isinstance(panel, Shaded):
        data["texts"] = [
            {name: _data(value) for name, value in vars(text).items()} for text in panel.texts
        ]
    elif isinstance(panel, Bars):
        data["groups"] = [
            {"name": name, "labels": [r[0] for r in rows], "values": rounded(r[1] for r in rows)}
            for name, rows in panel.groups.items()
        ]
    else:
        data |= {name: _data(value) for name, value in vars(panel).items() if name not in data}
    return data


def _data(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return list(map(_data, value)) if isinstance(value, Iterable) else rounded([value])[0]


def rounded(values: Iterable[float]) -> list[float | int | None]:
    """Numbers with four significant digits; None for those that are not finite."""
    numbers: list[float | int | None] = []
    for value in values:
        text = f"{float(value):.4g}"
        number = float(text) if text[-1].isdigit() else None
        numbers.append(int(number) if number is not None and number.is_integer() else number)
    return numbers


def with_sides(rows: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Rows about these prompts, with pair_id and side, in the order of the prompts."""
    places = prompts[["prompt_id", "pair_id", "side"]].assign(place=range(len(prompts)))
    joined = rows.merge(places, on="prompt_id")
    return joined.sort_values("place", kind="stable").drop(columns="place")


def by_pair(
    rows: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[str, dict[str, str], pd.DataFrame]]:
    """Each pair's rows for each combination of `by`: pair_id, the labels of a panel, and rows."""
    for of, members in grouped(rows, ["pair_id", *by]):
        yield str(of["pair_id"]), {name: str(of[name]) for name in by}, members


def side_bars(
    title: str, rows: pd.DataFrame, by: Sequence[str], *, label: str, value: str, note: str
) -> Iterator[tuple[str, Bars]]:
    """Each pair's values in a column, with labels of another, as bars for each side."""
    for pair, of, members in by_pair(rows, by):
        groups = {
            str(side): list(zip(of_side[label], of_side[value], strict=True))
            for side, of_side in members.groupby("side", sort=False)
        }
        yield pair, Bars(title, of, groups, note=note)


def mean_by_pair(rows: pd.DataFrame, prompts: pd.DataFrame, value: str) -> Mapping[str, float]:
    """The mean over a pair's prompts of a number, by pair_id; missing ones are left out."""
    pairs = dict(zip(prompts["prompt_id"], prompts["pair_id"], strict=True))
    measured = rows.dropna(subset=value)
    means = (
        measured[value].astype(float).groupby(measured["prompt_id"].map(pairs), sort=False).mean()
    )
    return {str(pair): float(number) for pair, number in means.items()}
