"""Tables on the terminal."""

import re
from collections.abc import Iterator
from itertools import takewhile

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from interp.errors import printable
from interp.report.formatting import FIGURES

NARROWEST = 80
"""Columns of a terminal for which tables are made, however narrow it is."""

_LONGEST_TEXT = 40
"""Columns that are made room for; a longer text is wrapped within its column."""

_SHORTEST_WRAPPED = 12
"""Columns up to which texts are never wrapped."""


def print_table(frame: pd.DataFrame, *, title: str) -> None:
    """Print a table to standard output, one word of a heading a line, figures to the right.

    A table that is wider than the terminal, or than 80 columns, is folded: it is printed in several
    parts, each of which begins with the columns of names that the table begins with. No figure is
    cut.
    """
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, NARROWEST)
    console.print(printable(title))
    texts = frame.map(_cell)
    for columns in _parts(texts, console.width):
        console.print(_table(texts[columns]))


def mean_with_sd(means: pd.Series, deviations: pd.Series) -> pd.Series:
    """Text such as "0.689 (0.193)", as the paper prints means; empty where there is none."""
    return pd.Series(
        [
            "" if pd.isna(mean) else f"{mean:.3f} ({deviation:.3f})"
            for mean, deviation in zip(means, deviations, strict=True)
        ],
        index=means.index,
    )


def _parts(texts: pd.DataFrame, width: int) -> Iterator[list[str]]:
    """The columns of each part that a table is printed in."""
    widths = {name: _width(texts[name]) for name in texts.columns}
    names = list(texts.columns[: _names_in_front(texts)])
    room = width - sum(widths[name] for name in names)
    part: list[str] = []
    for name in texts.columns[len(names) :]:
        if part and sum(widths[other] for other in (*part, name)) > room:
            yield [*names, *part]
            part = []
        part.append(name)
    yield [*names, *part]


def _names_in_front(texts: pd.DataFrame) -> int:
    """How many columns of names a table begins with."""
    names = [name for name in texts.columns if not _figures(texts[name])]
    in_front = takewhile(lambda name: name in names, texts.columns[:-1])
    return sum(1 for _ in in_front)


def _figures(texts: pd.Series) -> bool:
    return all(re.match(FIGURES, text) for text in texts)


def _width(texts: pd.Series) -> int:
    """Columns of the terminal that a column takes, with the space before it."""
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


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
