"""The report: one HTML file that needs no network, and its tables and figures as files next to it.

1. Check that no two tables and no two figures share a name.
2. Make each table a CSV file, and each figure an SVG and a PNG file.
3. Write them beside the page, or embed them in it, so that it can be mailed.
4. Write the page last: it never links to a file that is missing.
"""

import base64
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interp.errors import UserError
from interp.files import make_folder, reason_of, write_whole
from interp.report.figures.style import house_style, with_caption
from interp.report.formatting import heading
from interp.report.html import render
from interp.report.write import figure_svg, glossary, inline_svg, provenance

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
    """A token heat map, from `interp.report.html.token_heat_map`."""

    title: str
    html: Markup
    note: str = ""
    """How to read it, or why this prompt was chosen."""


@dataclass(frozen=True)
class PromptsItem:
    """The prompts behind a report, from `interp.report.page.prompts_item`; one a report.

    The page can filter them, and leads from accuracies to them.
    """

    title: str
    frame: pd.DataFrame
    """One row per prompt: its text first, the answers by model, and what it can be chosen by."""
    filters: tuple[str, ...]
    """Columns whose values choose prompts."""
    models: tuple[str, ...]
    """Columns that hold answers."""
    note: str = ""


Item = TableItem | FigureItem | HeatMapItem | PromptsItem

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
    """What a command that runs the study also prints; mostly nothing."""
    paper: str = ""
    """What to cite beside interp, where the report repeats a paper's study."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Words of this report, with what they mean and what else they are called."""


def write_report(report: Report, folder: Path, *, page: str = PAGE, embed: bool = False) -> Path:
    """Write the page, tables/ and figures/ into the folder; returns the page's path.

    Args:
        report: what the page shows.
        folder: where the page goes; it is made if it is not there.
        page: name of the page's file.
        embed: write the page alone, which then holds the files of its tables and figures.

    Raises:
        UserError: two tables or two figures of one name, a name that makes no file name, or a
            folder that cannot be written to.
    """
    _check_names(_items(report, TableItem))
    _check_names(_items(report, FigureItem))
    _make_folder(folder)
    drawn = {figure.name: _draw(figure) for figure in _items(report, FigureItem)}
    files = {f"tables/{item.name}.csv": _csv(item) for item in _items(report, TableItem)}
    files |= {file: content for figure in drawn.values() for file, content in figure.files.items()}
    if not embed:
        _write_files(files, folder)
    links = {file: _data_uri(file, content) if embed else file for file, content in files.items()}
    html = _html(report, {name: figure.svg for name, figure in drawn.items()}, links)
    write_whole(folder / page, lambda path: path.write_text(html, encoding="utf-8"))
    return folder / page


@dataclass(frozen=True)
class _Drawn:
    """A figure as an element of a page, and its files by their paths."""

    svg: Markup
    files: Mapping[str, bytes]


def _html(report: Report, svgs: Mapping[str, Markup], links: Mapping[str, str]) -> str:
    """The page; what leads to a file is in `links`."""
    return render(
        "page.html.jinja",
        report=report,
        svgs=svgs,
        links=links,
        record=json.dumps(report.record, indent=2, ensure_ascii=False, default=str),
        provenance=provenance(report.record),
        names=glossary(" ".join(_words(report)), report.names),
        kind=_kind,
    )


def _words(report: Report) -> Iterator[str]:
    """The texts of a report and the headings of its tables."""
    yield report.text
    for section in report.sections:
        yield from (section.title, section.text)
        for item in section.items:
            yield from (item.title, item.note)
            if isinstance(item, TableItem | PromptsItem):
                yield from (heading(str(name)) for name in item.frame.columns)


def _write_files(files: Mapping[str, bytes], folder: Path) -> None:
    for name in ("tables", "figures"):
        _make_within(folder, name)
    for file, content in files.items():
        write_whole(folder / file, partial(Path.write_bytes, data=content))


_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".png": "image/png"}


def _data_uri(file: str, content: bytes) -> str:
    kind = _TYPES[Path(file).suffix]
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder {folder}: {reason_of(error)}; {_ELSEWHERE}"
        ) from error


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


def _csv(table: TableItem) -> bytes:
    text: str = table.frame.to_csv(index=False)
    return text.encode("utf-8")


def _draw(item: FigureItem) -> _Drawn:
    with house_style():
        figure = item.draw().get_figure(root=True)
        assert isinstance(figure, Figure)
        shown = figure_svg(figure, name=item.name)
        with_caption(figure, title=item.title, text=item.note)
        png = io.BytesIO()
        figure.savefig(png, format="png")
        files = {
            f"figures/{item.name}.svg": figure_svg(figure, name=item.name).encode("utf-8"),
            f"figures/{item.name}.png": png.getvalue(),
        }
    return _Drawn(inline_svg(shown, name=item.name, label=item.title), files)


def _kind(item: Item) -> str:
    return _KINDS[type(item)]


_KINDS = {
    TableItem: "table",
    FigureItem: "figure",
    HeatMapItem: "heat-map",
    PromptsItem: "prompts",
}


MOST_PROMPTS = 2000
"""Prompts that a page shows; of more, whole pairs that are spread evenly."""

MOST_CHARACTERS = 2_000_000
"""Characters of all prompts that a page shows, likewise."""

MOST_VALUES = 300
"""Different values of a factor by which prompts can be chosen on the page."""

RIGHT, WRONG = "✓", "✗"
"""What an answer ends with."""

_NO_FACTORS = ("prompt_id", "pair_id", "side", "text", "gold", "weight")


def prompts_item(prompts: pd.DataFrame, answers: pd.DataFrame) -> PromptsItem:
    """A table of prompts, one row each, that its page can filter.

    Args:
        prompts: the prompts table.
        answers: the answers table: model, prompt_id, answer, correct, error.
    """
    shown = _spread(prompts)
    factors = [name for name in prompts.columns if _is_factor(prompts[name])]
    models = answers["model"].unique().tolist()
    table = shown[["text", "gold"]].rename(columns={"text": "prompt"})
    for model in models:
        own = answers[answers["model"] == model].set_index("prompt_id")
        table[model] = _outcomes(own.reindex(shown["prompt_id"])).to_numpy()
    table = table.join(shown[["side", *factors]])
    of_all = "" if len(shown) == len(prompts) else f" of {len(prompts):,}, spread evenly over pairs"
    return PromptsItem(
        "Prompts and answers",
        table.reset_index(drop=True),
        filters=("side", *factors),
        models=tuple(models),
        note=f"{len(shown):,} prompts{of_all}. {RIGHT}: the model's answer is correct, {WRONG}: it "
        "is not, or there is none. An underlined accuracy elsewhere on this page leads to its "
        "prompts, each of which it counts by its weight.",
    )


def _spread(prompts: pd.DataFrame) -> pd.DataFrame:
    """About as many prompts as a page shows, pairs as a whole."""
    pairs = prompts["pair_id"].unique()
    characters = int(prompts["text"].str.len().sum())
    step = max(-(-len(prompts) // MOST_PROMPTS), -(-characters // MOST_CHARACTERS))
    return prompts[prompts["pair_id"].isin(pairs[:: max(1, step)])]


def _is_factor(values: pd.Series) -> bool:
    name = str(values.name)
    if name in _NO_FACTORS or re.search(r"_(start|end)$", name):
        return False
    texts = pd.api.types.is_string_dtype(values) or pd.api.types.is_object_dtype(values)
    return texts and 1 < values.nunique() <= MOST_VALUES


def _outcomes(rows: pd.DataFrame) -> pd.Series:
    """What a model answered, and whether that is correct; empty where it was not asked."""
    failed = rows["error"].fillna("") != ""
    answer = rows["answer"].fillna("").replace("", "no answer").mask(failed, "error")
    correct = rows["correct"].eq(True).fillna(False).astype(bool)
    marked = answer + " " + correct.map({True: RIGHT, False: WRONG})
    marked = marked.mask(rows["correct"].isna() & ~failed, "not judged")
    return marked.where(rows["error"].notna(), "")
