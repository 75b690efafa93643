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
"""Least width of tables in characters, however narrow the terminal is."""

_LONGEST_TEXT = 40
"""Most characters reserved for a text; a longer one is wrapped within its column."""

_SHORTEST_WRAPPED = 12
"""Width in characters up to which texts are never wrapped."""

_EDGE = 1
"""Width in characters that a table takes in addition to its columns."""

_ROOM = 24
"""Least width that names leave for figures: enough for two or three."""


def print_table(frame: pd.DataFrame, *, title: str) -> None:
    """Print a table to standard output, one word of a heading per line, figures right-aligned.

    A table that is wider than the terminal, or than 80 columns, is printed in several parts, each
    of which begins with the columns of names that the table begins with. No figure and no name is
    cut; names too long for the table are numbered and listed below the table. Numbers have three
    decimals, small p-values four.
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
    """Print the tables among the items for people to read."""
    for item in items:
        if isinstance(item, TableItem):
            for title, table in item.shown:
                print_table(table, title=title)


class _Console(Console):
    """A console that leaves a closed pipe to the command line, which has an exit code for it."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError again, at which rich would end the program."""
        raise  # noqa: PLE0704


def mean_with_sd(means: pd.Series, deviations: pd.Series) -> pd.Series:
    """Text such as "0.689 (0.193)", as the paper prints means; empty if there is no mean."""
    return pd.Series(
        [
            "" if pd.isna(mean) else f"{mean:.3f} ({deviation:.3f})"
            for mean, deviation in zip(means, deviations, strict=True)
        ],
        index=means.index,
    )


def _with_legend(texts: pd.DataFrame, width: int) -> tuple[pd.DataFrame, list[str]]:
    """Numbers in place of the longest names if these leave figures too little room; a legend."""
    widths = {name: _width(texts[name]) for name in texts.columns[: _names_in_front(texts)]}
    legend: list[str] = []
    while len(widths) > 1 and width - sum(widths.values()) < _ROOM:
        longest = max(widths, key=lambda name: widths[name])
        if widths[longest] <= 2 + _SHORTEST_WRAPPED or not _followed_by_figures(texts):
            break
        numbers = {text: f"#{number}" for number, text in enumerate(texts[longest].unique(), 1)}
        legend += [f" {printable(longest)} {number}: {text}" for text, number in numbers.items()]
        texts = texts.assign(**{longest: texts[longest].map(numbers)})
        widths[longest] = _width(texts[longest])
    return texts, legend


def _followed_by_figures(texts: pd.DataFrame) -> bool:
    """Whether a table has figures after its names; a table of only texts is wrapped instead."""
    return any(_figures(texts[name]) for name in texts.columns[_names_in_front(texts) :])


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
    """Number of columns of names with which a table begins."""
    names = [name for name in texts.columns if not _figures(texts[name])]
    in_front = takewhile(lambda name: name in names, texts.columns[:-1])
    return sum(1 for _ in in_front)


def _figures(texts: pd.Series) -> bool:
    return all(re.match(FIGURES, text.removeprefix("< ")) for text in texts)


def _width(texts: pd.Series) -> int:
    """Width in characters of a column on the terminal, with the space before it."""
    words = str(texts.name).split("_")
    longest_text = max(map(len, texts), default=0)
    return 2 + max(min(longest_text, _LONGEST_TEXT), *map(len, words))


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
