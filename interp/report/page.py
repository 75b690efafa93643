"""The report: one HTML file that needs no network, and its tables and figures as files next to it.

1. Check that no two tables and no two figures share a name.
2. Write each table as CSV and each figure as SVG and PNG.
3. Write report.html, which holds all of them, last: a page never links to a file that is missing.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interp.errors import UserError
from interp.files import make_folder, write_whole
from interp.report.html import render
from interp.report.style import house_style, with_caption
from interp.report.svg import figure_svg, inline_svg

PAGE = "report.html"


@dataclass(frozen=True)
class TableItem:
    """A table, sorted by the reader; also written to tables/NAME.csv, unrounded."""

    name: str
    """Stem of its file: letters, digits, "_" and "-"."""
    title: str
    frame: pd.DataFrame
    note: str = ""
    """How to read it: units, counts, what is undefined and why."""


@dataclass(frozen=True)
class FigureItem:
    """A figure; also written to figures/NAME.svg and figures/NAME.png."""

    name: str
    """Stem of its files: letters, digits, "_" and "-"."""
    title: str
    draw: Callable[[], Axes]
    """Draws the figure and returns any of its axes."""
    note: str = ""
    """How to read it: what dots, bars and whiskers are, and what was tested. The files hold the
    title above the figure and this below it."""


@dataclass(frozen=True)
class HeatMapItem:
    """A token heat map, from `interp.report.heatmap.token_heat_map`."""

    title: str
    html: Markup
    note: str = ""
    """How to read it, or why this prompt was chosen."""


Item = TableItem | FigureItem | HeatMapItem

_T = TypeVar("_T", TableItem, FigureItem)


@dataclass(frozen=True)
class Section:
    """A part of the report, with a heading that the table of contents leads to."""

    title: str
    text: str = ""
    """Plain text; an empty line ends a paragraph."""
    items: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything that a report page shows."""

    title: str
    text: str
    """Plain text; an empty line ends a paragraph."""
    sections: tuple[Section, ...]
    record: Mapping[str, object] = field(default_factory=dict)
    """What run.json says."""
    problems: tuple[str, ...] = ()
    """What is missing, such as unfinished shards: shown before everything else."""
    answer: str = ""
    """What a command that writes the report also prints; mostly nothing."""


def write_report(report: Report, folder: Path, *, page: str = PAGE) -> Path:
    """Write the page, tables/ and figures/ into the folder; returns the page's path.

    Raises:
        UserError: two tables or two figures of one name, a name that makes no file name, or a
            folder that cannot be written to.
    """
    _check_names(_items(report, TableItem))
    _check_names(_items(report, FigureItem))
    _make_folder(folder)
    tables, figures = (_make_within(folder, name) for name in ("tables", "figures"))
    for table in _items(report, TableItem):
        _write_table(table, tables / f"{table.name}.csv")
    svgs = {figure.name: _write_figure(figure, figures) for figure in _items(report, FigureItem)}
    record = json.dumps(report.record, indent=2, ensure_ascii=False, default=str)
    html = render("page.html.jinja", report=report, svgs=svgs, record=record, kind=_kind)
    write_whole(folder / page, lambda path: path.write_text(html, encoding="utf-8"))
    return folder / page


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        raise UserError(f"cannot make the folder {folder}: {reason}; {_ELSEWHERE}") from error


def _make_within(folder: Path, name: str) -> Path:
    """A folder within that of the report, and no link out of it: others may be able to write there.

    Raises:
        UserError: it cannot be made, or something else is in its place.
    """
    try:
        return make_folder(folder, name)
    except UserError as error:
        raise UserError(f"cannot make the folder {folder / name}: {error}; {_ELSEWHERE}") from error


_ELSEWHERE = "have the report written elsewhere by interp report DIR --out FILE"


def _items(report: Report, kind: type[_T]) -> Iterator[_T]:
    for section in report.sections:
        yield from (item for item in section.items if isinstance(item, kind))


def _check_names(items: Iterator[TableItem] | Iterator[FigureItem]) -> None:
    for name, times in Counter(item.name for item in items).items():
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise UserError(f"{name!r} is no file name; expected letters, digits, '_' and '-'")
        if times > 1:
            raise UserError(f"{times} tables or figures are named {name!r}; give each its own name")


def _write_table(table: TableItem, file: Path) -> None:
    write_whole(file, lambda path: table.frame.to_csv(path, index=False))


def _write_figure(item: FigureItem, folder: Path) -> Markup:
    """Write the figure's files; returns it as an element of a page."""
    with house_style():
        figure = item.draw().get_figure(root=True)
        assert isinstance(figure, Figure)
        shown = figure_svg(figure, name=item.name)
        with_caption(figure, title=item.title, text=item.note)
        svg = figure_svg(figure, name=item.name)
        write_whole(folder / f"{item.name}.svg", lambda path: path.write_text(svg, "utf-8"))
        write_whole(folder / f"{item.name}.png", lambda path: figure.savefig(path, format="png"))
    return inline_svg(shown, name=item.name, label=item.title)


def _kind(item: Item) -> str:
    return {TableItem: "table", FigureItem: "figure", HeatMapItem: "heat-map"}[type(item)]
