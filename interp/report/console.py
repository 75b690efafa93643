"""Tables on the terminal."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from interp.errors import printable
from interp.report.formatting import FIGURES, holds_p_values, p_text
from interp.report.page import FigureItem, TableItem

NARROWEST = 80
"""Smallest width of a table in characters, however narrow the terminal is."""

_LONGEST_TEXT = 40
"""Largest number of characters reserved for a string; longer strings are wrapped within their
column.
"""

_SHORTEST_WRAPPED = 12
"""Width in characters up to which strings are never wrapped."""

_EDGE = 1
"""Width in characters of everything in a table except its columns."""

_ROOM = 24
"""Width in characters that names must leave for figures: enough for two or three figures."""


def print_table(frame: pd.DataFrame, *, title: str) -> None:
    """Print a table, with headings broken into one word per line and figures right-aligned.

    A table that fits into neither the terminal nor 80 columns is printed in parts. Each part begins
    with the table's first columns, which contain names. No figure and no name is truncated; names
    too long for the table are numbered and listed below it. Numbers have three decimals; small
    p-values have four.
    """
    console = _Console(markup=False, highlight=False)
    console.width = max(console.width, NARROWEST)
    console.print(printable(title))
    texts, legend = _with_legend(frame.apply(_texts), console.width)
    for columns in _parts(texts, console.width):
        console.print(_table(texts[columns]))
    for line in legend:
        console.print(line)


def print_items(items: Iterable[TableItem | FigureItem]) -> None:
    """Print those of the items that are tables."""
    for item in items:
        if isinstance(item, TableItem):
            for title, table in item.shown:
                print_table(table, title=title)


class _Console(Console):
    """A console that leaves the handling of a closed pipe to the command line."""

    def on_broken_pipe(self) -> None:
        """Reraise the BrokenPipeError, at which rich would end the program."""
        raise  # noqa: PLE0704


def _with_legend(texts: pd.DataFrame, width: int) -> tuple[pd.DataFrame, list[str]]:
    """The table and its legend; numbers replace the longest names if columns would not fit."""
    in_front = _names_in_front(texts)
    widths = {name: _width(texts[name]) for name in texts.columns[:in_front]}
    # A table that contains only strings is wrapped instead.
    has_figures = any(_figures(texts[name]) for name in texts.columns[in_front:])
    legend: list[str] = []
    while has_figures and len(widths) > 1 and width - sum(widths.values()) < _ROOM:
        longest = max(widths, key=lambda name: widths[name])
        if widths[longest] <= 2 + _SHORTEST_WRAPPED:
            break
        numbers = {text: f"#{number}" for number, text in enumerate(texts[longest].unique(), 1)}
        legend += [f" {printable(longest)} {number}: {text}" for text, number in numbers.items()]
        texts = texts.assign(**{longest: texts[longest].map(numbers)})
        widths[longest] = _width(texts[longest])
    return texts, legend


def _parts(texts: pd.DataFrame, width: int) -> Iterator[list[str]]:
    """The columns of each part in which a table is printed."""
    widths = {name: _width(texts[name]) for name in texts.columns}
    names = list(texts.columns[: _names_in_front(texts)])
    room = width - _EDGE - sum(widths[name] for name in names)
    part: list[str] = []
    for name in texts.columns[len(names) :]:
        if part and sum(widths[other] for other in (*part, name)) > room:
            yield [*names, *part]
            part = []
        part.append(name)
    yield [*names, *part]


def _names_in_front(texts: pd.DataFrame) -> int:
    """Number of leading columns that contain names."""
    return sum(1 for _ in takewhile(lambda name: not _figures(texts[name]), texts.columns[:-1]))


def _figures(texts: pd.Series) -> bool:
    return all(re.match(FIGURES, text.removeprefix("< ")) for text in texts)


def _width(texts: pd.Series) -> int:
    """Width in characters of a column on the terminal, including the space before it."""
    longest = min(max(map(len, texts), default=0), _LONGEST_TEXT)
    return 2 + max(longest, *map(len, str(texts.name).split("_")))


def _table(texts: pd.DataFrame) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in texts.columns:
        table.add_column(
            printable(str(name)).replace("_", "\n"),
            justify="right" if _figures(texts[name]) else "left",
            vertical="bottom",
            overflow="fold",
            no_wrap=_figures(texts[name]) or max(map(len, texts[name])) <= _SHORTEST_WRAPPED,
        )
    for row in texts.itertuples(index=False):
        table.add_row(*row)
    return table


def _texts(values: pd.Series) -> pd.Series:
    number = p_text if holds_p_values(str(values.name)) else "{:.3f}".format
    return values.map(lambda value: _cell(value, number))


def _cell(value: object, number: Callable[[float], str]) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else number(value)
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
