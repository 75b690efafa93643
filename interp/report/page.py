"""The content of a report page: sections of tables, figures and pictures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from interp.analysis.cautions.caution import Caution
from interp.console import counted
from interp.report.pairs import Browser

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_ROWS = 500
"""Largest number of rows of a table on a page; its file has all of them."""

Titled = tuple[str, pd.DataFrame]
"""A table under its title."""


@dataclass(frozen=True)
class TableItem:
    """A table that the reader can sort; it is also written, unrounded, to tables/NAME.csv."""

    name: str
    """Stem of the table's file: letters, digits, "_" and "-"."""
    title: str
    frame: pd.DataFrame
    note: str = ""
    """Notes on reading the table: units, counts, undefined values and their reasons."""
    narrow: Sequence[Titled] | None = None
    """Tables that terminals and notebooks show instead, such as parts of a wide table. If empty,
    they show nothing; if None, they show the table itself.
    """
    display: pd.DataFrame | None = None
    """The table that the page shows instead: for example, with numbers and intervals as text, or
    only with the columns that can be compared.
    """
    folded: bool = False
    """Whether the page folds the table, such as one whose numbers a figure shows; it always folds
    long tables.
    """
    pairs: Mapping[str, str] = field(default_factory=dict)
    """Values of factors that all pairs behind the numbers have."""
    no_pairs: str = ""
    """Why no pairs of the page are behind the numbers, in a few words such as "published"."""

    @property
    def on_page(self) -> pd.DataFrame:
        """The table that the page shows, up to `MOST_ROWS`."""
        return (self.frame if self.display is None else self.display).head(MOST_ROWS)

    @property
    def rows(self) -> str:
        """How many rows the page shows, and of how many if it leaves some to the file."""
        shown, display = self.on_page, self.display
        # A table in another form, such as a matrix, has rows of its own.
        reshaped = display is not None and not display.columns.equals(self.frame.columns)
        total = len(display if display is not None and reshaped else self.frame)
        return counted(total, "row") if len(shown) == total else f"{len(shown):,} of {total:,} rows"

    @property
    def shown(self) -> Sequence[Titled]:
        """The tables that terminals and notebooks show."""
        return [(self.title, self.frame)] if self.narrow is None else self.narrow


@dataclass(frozen=True)
class FigureItem:
    """A figure; it is also written to figures/NAME.svg and figures/NAME.png."""

    name: str
    """Stem of the figure's files: letters, digits, "_" and "-"."""
    title: str
    draw: "Callable[[], Axes]"
    """Function that draws the figure and returns any of its axes."""
    note: str = ""
    """Notes on reading the figure (dots, bars, whiskers and tests), which are the caption in its
    files.
    """
    pairs: Mapping[str, str] = field(default_factory=dict)
    no_pairs: str = ""
    """As `pairs` and `no_pairs` of a `TableItem`."""


@dataclass(frozen=True)
class PictureItem:
    """A picture made of HTML, such as a circuit or a pair with shaded segments."""

    name: str
    """Letters, digits, "_" and "-"; the picture's anchor."""
    title: str
    html: Markup
    note: str = ""
    """How to read the picture."""


Item = TableItem | FigureItem | PictureItem


@dataclass(frozen=True)
class OnPage:
    """Items that only the page shows, made when it is written."""

    make: Callable[[], Iterable[Item]]


@dataclass(frozen=True)
class FileItem:
    """A further file of a run's folder, written from its shards when there are new ones."""

    name: str
    write: Callable[[Path], object]


@dataclass(frozen=True)
class Section:
    """A part of the report, with a heading to which the table of contents links."""

    title: str
    text: str = ""
    """Plain text; an empty line ends a paragraph."""
    items: tuple[Item, ...] = ()


MOST_SENTENCES, MOST_WORDS = 5, 25
"""Maximum number of sentences on the first screen, and of words in each sentence."""


@dataclass(frozen=True)
class Glance:
    """The first screen of a page (`interp.report.glance`)."""

    question: str
    """The question, the models, and how much was measured."""
    sentences: tuple[str, ...]
    """At most `MOST_SENTENCES` quotable sentences, each with at most `MOST_WORDS` words and with
    its n."""
    items: tuple[TableItem | FigureItem | PictureItem, ...] = ()
    """One row of headline numbers per model, the picture that the measurement is known for, and a
    figure with the main result."""
    legend: str = ""
    """A description of the models, if readers of the page need one."""
    cautions: tuple[Caution, ...] = ()
    """What a careful reader would object to, shown before any number."""


@dataclass(frozen=True, repr=False)
class Report:
    """The content of a report page."""

    title: str
    text: str
    """How to read the numbers, in plain text; an empty line ends a paragraph."""
    sections: tuple[Section, ...]
    record: Mapping[str, object] = field(default_factory=dict)
    """Facts from run.json."""
    problems: tuple[str, ...] = ()
    """Missing parts, such as unfinished shards; shown before everything else."""
    glance: Glance | None = None
    paper: str = ""
    """Works to cite along with interp if the report repeats the study of a paper."""
    browser: Browser | None = None
    pairs: Mapping[str, str] = field(default_factory=dict)
    """Values of factors of the pairs behind the numbers, unless a table says otherwise."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Terms used in this report, with their meanings and other names."""

    @property
    def items(self) -> tuple[Item, ...]:
        """Everything that the page shows, beginning with the first screen."""
        first: tuple[Item, ...] = self.glance.items if self.glance else ()
        return (*first, *(item for section in self.sections for item in section.items))

    def __repr__(self) -> str:
        way = "interp.write_page(report, 'page.html') writes it"
        return f"Report({self.title!r}, {counted(len(self.items), 'item')}; {way})"


MOST_PROMPTS = 2000
"""Largest number of prompts on a page; of larger sets, it shows evenly spread whole pairs."""

MOST_CHARACTERS = 2_000_000
"""Largest total number of characters in the prompts on a page."""


def apart(names: Sequence[str], kind: str, others: Iterable[str]) -> list[str]:
    """Names that users have chosen as columns, each unlike the table's `others` and its own.

    To a name that is taken, the kind of what is named is added, such as "model".
    """
    taken = [*others]
    for name in names:
        column = name
        while column in taken:
            column = f"{column} ({kind})"
        taken.append(column)
    return taken[len(taken) - len(names) :]


def spread(prompts: pd.DataFrame) -> pd.DataFrame:
    """Whole pairs, evenly spread, with about as many prompts as a page may show."""
    pairs = prompts["pair_id"].unique()
    characters = int(prompts["text"].str.len().sum())
    step = max(-(-len(prompts) // MOST_PROMPTS), -(-characters // MOST_CHARACTERS))
    return prompts[prompts["pair_id"].isin(pairs[:: max(1, step)])]
