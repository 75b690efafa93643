"""Tables on the terminal."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from textwrap import fill
from typing import Any, Protocol, runtime_checkable

from rich import box
from rich.console import Console
from rich.table import Table

from interp.errors import printable, visible
from interp.report import formatting

Texts = dict[str, list[str]]
"""The cells of each column, as text."""

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


@runtime_checkable
class TableLike(Protocol):
    """Named columns, such as a pandas DataFrame or a dict of lists."""

    def items(self) -> Iterable[tuple[Any, Iterable[Any]]]:
        """The name and values of each column."""
        ...


def print_table(table: TableLike, *, title: str) -> None:
    """Print a table, with headings broken into one word per line and figures right-aligned.

    A table that fits into neither the terminal nor 80 columns is printed in parts. Each part begins
    with the table's first columns, which contain names. No figure and no name is truncated; names
    too long for the table are numbered and listed below it. Counts are whole numbers, other numbers
    have three decimals; small p-values have four.
    """
    console = _Console(markup=False, highlight=False)
    console.width = max(console.width, NARROWEST)
    console.print(printable(title))
    texts = {str(name): _texts(str(name), values) for name, values in table.items()}
    # The leading columns contain names.
    in_front = [*takewhile(lambda name: not _figures(texts[name]), list(texts)[:-1])]
    shown, legend = _with_legend(texts, in_front, console.width)
    for names in _parts(shown, in_front, console.width):
        console.print(_table({name: shown[name] for name in names}))
    for line in legend:
        console.print(line)


def print_cautions(sentences: Iterable[str]) -> None:
    """Print what a careful reader would object to, before any table."""
    lines = [f"- {sentence}" for sentence in sentences]
    if lines:
        print_sentences(["Read first", *lines, ""])


def print_sentences(sentences: Iterable[str]) -> None:
    """Print sentences, each on lines of its own that fit into the terminal."""
    console = _Console(markup=False, highlight=False, soft_wrap=True)
    width = max(console.width, NARROWEST)
    for text in map(printable, sentences):
        indent = "  " if text.startswith("- ") else ""
        console.print(fill(text, width, subsequent_indent=indent, break_on_hyphens=False))


class _Console(Console):
    """A console that leaves the handling of a closed pipe to the command line."""

    def on_broken_pipe(self) -> None:
        """Reraise the BrokenPipeError, at which rich would end the program."""
        raise  # noqa: PLE0704


def _with_legend(texts: Texts, in_front: Sequence[str], width: int) -> tuple[Texts, list[str]]:
    """The table and its legend; numbers replace the longest names if columns would not fit."""
    widths = {name: _width(name, texts[name]) for name in in_front}
    # A table that contains only strings is wrapped instead.
    has_figures = any(_figures(texts[name]) for name in texts if name not in widths)
    legend: list[str] = []
    # Names must leave room for two or three figures.
    while has_figures and len(widths) > 1 and width - sum(widths.values()) < 24:
        longest = max(widths, key=lambda name: widths[name])
        if widths[longest] <= 2 + _SHORTEST_WRAPPED:
            break
        different = dict.fromkeys(texts[longest])
        numbers = {text: f"#{number}" for number, text in enumerate(different, 1)}
        legend += [f" {printable(longest)} {number}: {text}" for text, number in numbers.items()]
        texts = texts | {longest: [numbers[text] for text in texts[longest]]}
        widths[longest] = _width(longest, texts[longest])
    return texts, legend


def _parts(texts: Texts, names: Sequence[str], width: int) -> Iterator[list[str]]:
    """The columns of each part in which a table is printed."""
    widths = {name: _width(name, values) for name, values in texts.items()}
    room = width - _EDGE - sum(widths[name] for name in names)
    part: list[str] = []
    for name in list(texts)[len(names) :]:
        if part and sum(widths[other] for other in (*part, name)) > room:
            yield [*names, *part]
            part = []
        part.append(name)
    yield [*names, *part]


def _figures(texts: Sequence[str]) -> bool:
    return all(re.match(formatting.FIGURES, text.removeprefix("< ")) for text in texts)


def _width(name: str, texts: Sequence[str]) -> int:
    """Width in characters of a column on the terminal, including the space before it."""
    longest = min(max(map(len, texts), default=0), _LONGEST_TEXT)
    return 2 + max(longest, *map(len, name.split("_")))


def _table(texts: Texts) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, values in texts.items():
        table.add_column(
            printable(name).replace("_", "\n"),
            justify="right" if _figures(values) else "left",
            vertical="bottom",
            overflow="fold",
            no_wrap=_figures(values) or max(map(len, values)) <= _SHORTEST_WRAPPED,
        )
    for row in zip(*texts.values(), strict=True):
        table.add_row(*row)
    return table


def _texts(name: str, values: Iterable[object]) -> list[str]:
    number = formatting.p_text if formatting.holds_p_values(name) else "{:.3f}".format
    return [_cell(value, number) for value in formatting.with_counts(values)]


def _cell(value: object, number: Callable[[float], str]) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else formatting.without_minus_zero(number(value))
    return f"{value:,}" if isinstance(value, int) else printable(visible(str(value)))
