"""A report as files: an HTML page that needs no network, and its tables and figures next to it.

The page is written last, so it never links to a missing file.
"""

import base64
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.text import Text

from interp.analysis.cautions.caution import void_models
from interp.console import counted
from interp.errors import UserError
from interp.files import check_replaceable, make_folder, reason_of, write_whole
from interp.report.browse import app, browser_of, embedded, piece_names, write_browser
from interp.report.figures.style import Picture, house_style, with_caption
from interp.report.formatting import heading
from interp.report.glance import ACCURACY
from interp.report.html import render
from interp.report.latex import latex
from interp.report.page import FigureItem, Item, Report, TableItem, spread
from interp.report.pairs import Browser, rounded
from interp.report.pieces import PIECES, links, plain_json
from interp.statistics.decisions import reach_in_words

PAGE = "report.html"


def write_report(report: Report, folder: Path, *, page: str = PAGE, embed: bool = False) -> Path:
    """Write the page, tables/ and figures/ into the folder; return the page's path.

    With `embed`, only the page is written, with the files of its tables and figures embedded in it.

    Raises:
        UserError: two tables or two figures share a name, a name is not a valid file name, or the
            folder is not writable.
    """
    report = _with_notes(report)
    tables = [item for item in report.items if isinstance(item, TableItem)]
    figures = [item for item in report.items if isinstance(item, FigureItem)]
    _check_names(tables)
    _check_names(figures)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot create the folder {folder}: {reason_of(error)}; {_ELSEWHERE}"
        ) from error
    files: dict[str, bytes] = {}
    svgs, marks = {}, {}
    for figure in figures:
        svgs[figure.name], drawn, marks[figure.name] = _draw(figure)
        files |= drawn
    for table in tables:
        files[f"tables/{table.name}.csv"] = table.frame.to_csv(index=False).encode("utf-8")
        files[f"tables/{table.name}.tex"] = latex(table).encode("utf-8")
    if not embed:
        _write_files(files, folder)
        if report.browser is not None:
            write_browser(report.browser, folder, title=report.title, page=page)
    linked = report.browser
    if embed and linked is not None:  # a single file holds few pairs, spread evenly
        linked = replace(linked, prompts=spread(linked.prompts))
    beside = "" if embed else browser_of(page)
    inline = embedded(linked, report.title) if linked and embed else ""
    html = render(
        "page.html.jinja",
        report=report,
        browser=beside,
        pairs="" if linked is None else plain_json(links(linked, beside, report.pairs)),
        counts=_count_pairs(report.browser, linked),
        inline=inline,
        app=app() if inline else "",
        svgs=svgs,
        links={file: _data_uri(file, files[file]) if embed else file for file in files},
        record=json.dumps(report.record, indent=2, ensure_ascii=False, default=str),
        provenance=provenance(report.record),
        names=glossary(" ".join(_words(report)), report.names),
        plain_json=lambda data: plain_json(data if isinstance(data, list) else dict(data)),
        marks=marks,
        kind=lambda item: type(item).__name__.removesuffix("Item").lower(),
    )
    write_whole(folder / page, lambda path: path.write_text(html, encoding="utf-8"))
    return folder / page


def write_page(report: Report, page: str | Path, *, embed: bool = False) -> Path:
    """Write a page, with its browser of pairs, tables/ and figures/ beside it; return its path.

    Args:
        report: from `report()` of a result, or from `interp.scan`.
        page: the file, which may replace another page.
        embed: write a single file that can be mailed, with tables and figures embedded.

    Raises:
        UserError: this is no report, or the place holds something other than a page, or cannot be
            written.
    """
    if not isinstance(report, Report):
        raise UserError(
            f"a page is written from a report, such as result.report(); got {report!r:.60}"
        )
    file = Path(page)
    check_replaceable(file)
    return write_report(report, file.parent, page=file.name, embed=embed)


def _with_notes(report: Report) -> Report:
    """The report whose tables say what their accuracies and corrected tests cannot show."""
    void = void_models(report.glance.cautions) if report.glance else {}

    def noted(item: Item) -> Item:
        if not isinstance(item, TableItem):
            return item
        notes = (item.note, _unread(item.frame, void), reach_in_words(item.frame))
        return replace(item, note=" ".join(filter(None, notes)))

    sections = [replace(part, items=tuple(map(noted, part.items))) for part in report.sections]
    return replace(report, sections=tuple(sections))


def _unread(frame: pd.DataFrame, void: Mapping[str, str]) -> str:
    """Which accuracies of a table show nothing about what a model reads, and why."""
    if not void or "model" not in frame:
        return ""
    judged = frame.columns.astype(str).str.contains(ACCURACY)
    shown = frame.loc[frame.loc[:, judged].notna().any(axis="columns"), "model"]
    about = [f"{name}: {why}" for name, why in void.items() if shown.eq(name).any()]
    return f"These accuracies do not show what a model reads: {'; '.join(about)}." * bool(about)


def _count_pairs(browser: Browser | None, shown: Browser | None) -> str:
    if browser is None or shown is None:
        return ""
    every, some = (pairs.prompts["pair_id"].nunique() for pairs in (browser, shown))
    return counted(every, "pair") + (f", of which this file holds {some:,}" * (some < every))


def files_of(report: Report, folder: Path, *, page: str = PAGE, embed: bool = False) -> list[str]:
    """The files that `write_report` has written, by path within the page's folder."""
    names = [page]
    if report.browser is not None and not embed:
        names += [browser_of(page), *(f"{PIECES}/{name}" for name in piece_names(folder))]
    for item in () if embed else report.items:
        if isinstance(item, TableItem):
            names += [f"tables/{item.name}.csv", f"tables/{item.name}.tex"]
        elif isinstance(item, FigureItem):
            names += [f"figures/{item.name}.svg", f"figures/{item.name}.png"]
    return names


def _words(report: Report) -> Iterator[str]:
    """The texts in a report and the headings in its tables."""
    yield report.text
    if report.glance:
        yield from (report.glance.question, report.glance.legend, *report.glance.sentences)
        yield from (caution.text for caution in report.glance.cautions)
    for section in report.sections:
        yield from (section.title, section.text)
    for item in report.items:
        yield from (item.title, item.note)
        if isinstance(item, TableItem):
            yield from (heading(str(name)) for name in item.on_page.columns)


def _write_files(files: Mapping[str, bytes], folder: Path) -> None:
    try:
        for name in ("tables", "figures"):
            # Follows no links out of the report's folder, which others may be able to create.
            make_folder(folder, name)
        for file, content in files.items():
            write_whole(folder / file, partial(Path.write_bytes, data=content))
    except UserError as error:
        raise UserError(f"{error}; or {_ELSEWHERE}") from error


_TYPES = {
    ".csv": "text/csv",
    ".tex": "application/x-tex",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def _data_uri(file: str, content: bytes) -> str:
    kind = _TYPES[Path(file).suffix]
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


_ELSEWHERE = "write the report elsewhere with interp report DIR --out FILE"


def _check_names(items: Sequence[TableItem] | Sequence[FigureItem]) -> None:
    for name, times in Counter(item.name for item in items).items():
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise UserError(f"{name!r} is not a file name; expected letters, digits, '_' and '-'")
        if times > 1:
            raise UserError(f"{times} tables or figures are named {name!r}; expected unique names")


def _draw(item: FigureItem) -> tuple[Markup, dict[str, bytes], list[dict[str, object]]]:
    """A figure as an element of a page, the contents of its files by path, and its marks."""
    with house_style():
        figure = item.draw().get_figure(root=True)
        assert isinstance(figure, Figure)
        shown, least = figure_svg(figure, name=item.name), _least_width(figure)
        with_caption(figure, title=item.title, text=item.note)
        captioned, png = figure_svg(figure, name=item.name), io.BytesIO()
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine()  # everything has its place, and finding it takes long
        figure.savefig(png, format="png")
        files = {
            f"figures/{item.name}.svg": captioned.encode("utf-8"),
            f"figures/{item.name}.png": png.getvalue(),
        }
    figure_marks = figure.marks if isinstance(figure, Picture) and not item.no_pairs else ()
    marks = [{**asdict(mark), "value": rounded([mark.value])[0]} for mark in figure_marks]
    return inline_svg(shown, name=item.name, label=item.title, least=least), files, marks


LEAST_LETTERS = 9.0
"""Smallest height in pixels of a figure's letters; a figure too wide for the page scrolls."""


def _least_width(figure: Figure) -> float:
    """Width in pixels of a figure whose smallest letters are `LEAST_LETTERS` high."""
    sizes = [
        float(text.get_fontsize())
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip()
    ]
    inches = float(figure.get_size_inches()[0])
    return inches * 72 * LEAST_LETTERS / min(sizes, default=LEAST_LETTERS)


def figure_svg(figure: Figure, *, name: str) -> str:
    """The text of an SVG file, reproducible byte by byte; its ids are seeded with `name`."""
    file = io.StringIO()
    # Draw letters as outlines, so the figure does not depend on installed fonts.
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def inline_svg(svg: str, *, name: str, label: str, least: float) -> Markup:
    """The <svg> element for a page, with ids unique to `name` and a label for screen readers.

    It is never narrower than `least` pixels.

    Matplotlib numbers ids from one in each file, so without unique ids, a figure would use the clip
    paths and markers of another figure on the page, and its style sheet would apply to the whole
    page.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", element, flags=re.S
    )
    element = re.sub(r'((?:\bid="|href="#|url\(#))', rf"\g<1>{name}-", element)
    style = f"min-width: {least:.0f}px"
    labeled = f'<svg role="img" aria-label="{escape(label)}" style="{style}" '
    return Markup(element.replace("<svg ", labeled, 1))


_BIBTEX = """\
@software{{interp,
  title = {{interp: attribution and mechanistic interpretability on reasoning prompts in pairs}},
  author = {{{{The interp developers}}}},
  version = {{{version}}},
  year = {{{year}}}
}}"""


def provenance(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the record of a run or study says of all calls of commands; empty if it has no calls.

    measured: the day, or the first and last days, in UTC; versions of interp; commands: distinct
    command lines, of which calls from Python have none; bibtex: the entry for interp, with the last
    version and the last year.
    """
    if not (calls := record.get("history", [])):
        return {}
    days = sorted(
        time[:10] for call in calls for time in (call["started"], call["finished"]) if time
    )
    versions = list(dict.fromkeys(call["versions"].get("interp", "unknown") for call in calls))
    return {
        "measured": " to ".join(dict.fromkeys((days[0], days[-1]))),
        "versions": versions,
        "commands": list(dict.fromkeys(call["command"] for call in calls if call["command"])),
        "bibtex": _BIBTEX.format(version=versions[-1], year=days[-1][:4]),
    }


TERMS: Mapping[str, str] = {
    "accuracy": "share of prompts whose most probable answer is the correct one",
    "paired accuracy": "share of pairs, or groups, in which every prompt is answered correctly",
    "side": "role of a prompt within its pair, such as rulebreaker or non_rulebreaker",
    "segment": "a named part of a prompt: premise1 in tables is premise 1 in figures",
    "score": "value that an attribution method assigns to a token or a segment, raw and signed",
    "share": "absolute value of a score divided by the sum of absolute scores over the whole "
    "prompt, from 0 to 1; for a circuit, the fraction of all edges that it contains",
    "ratio": "mean score of a token of one segment divided by that of another; 1 if they are equal",
    "unnormalized": "summed score of one segment divided by that of another; unlike a ratio, "
    "which compares means over tokens, it grows with the length of the first segment",
    "effect": "change that a patch or a replaced segment causes in the difference between two "
    "answers, in logits",
    "recovered": "an effect as a share of the difference between the two prompts of a pair; it may "
    "exceed 1",
    "familiarity": "the probability that a model assigns to a fact's answer when asked for it "
    "alone, in one wording",
    "perplexity": "exponential of the mean negative log-probability per token of the prompt",
    "cluster": "prompts about one subject, which form one observation of a test",
    "low": "lower end of the 95% interval; the upper end is high",
    "p holm": "p corrected by Holm's method over tests that belong together; if a table has a "
    "column family, within each family",
    "p least": "smallest p that a test can give with as many clusters and resamples",
    "p holm least": "smallest p holm that a test can have in as large a family, whatever the data; "
    "if it is not below 0.05, nothing can be significant",
    "graft": "an adapter of a published model that was trained such that the cause of its answers "
    "is known",
    "organism": "a small packaged model that was trained such that the cause of its answers is "
    "known",
    "undefined": "a statistic without a value; the note of its row or table gives the reason",
}
"""The meaning of each term, and other names for it on the page."""


def glossary(text: str, own: Mapping[str, str]) -> pd.DataFrame:
    """The general terms that a page uses and the study's own, with meanings, sorted by name."""
    whole = r"(?<![\w-]){}(?![\w-])".format
    terms = [word for word in TERMS if re.search(whole(re.escape(word)), text, re.IGNORECASE)]
    used, words = sorted(dict.fromkeys([*terms, *own]), key=str.lower), {**TERMS, **own}
    return pd.DataFrame({"name": used, "meaning": [words[word] for word in used]}, dtype=object)
