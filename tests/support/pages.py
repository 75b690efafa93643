"""The prompts, the names and the first screen of a page."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from interp.report.page import (
    MOST_SENTENCES,
    MOST_WORDS,
    FigureItem,
    PictureItem,
    Report,
    TableItem,
)


@contextmanager
def undrawn() -> Iterator[None]:
    """Pages are written with empty figures, for tests that look at none: drawing takes longest."""

    def empty(item: FigureItem) -> tuple[Markup, dict[str, bytes], None]:
        return Markup(), {f"figures/{item.name}.{kind}": b"" for kind in ("svg", "png")}, None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interp.report.write._draw", empty)
        yield


def unused_names(report: Report, page: str) -> list[str]:
    """Names that the page explains but does not use."""
    text = unescape(page.partition('id="names"')[0]).replace("_", " ").lower()
    return [name for name in report.names if name.lower() not in text]


def browsed(folder: Path) -> dict[str, Any]:
    """The index of the browser of pairs beside a page and, under "shown", every pair by id."""
    files = sorted((folder / "pairs").glob("*.js"))
    data = {file.stem: json.loads(file.read_text("utf-8").split(", ", 1)[1][:-3]) for file in files}
    pairs = (pair for name, own in data.items() if name[0] == "d" for pair in own)
    return {**data["index"], "shown": {pair["id"]: pair for pair in pairs}}


def panels_of(pair: dict[str, Any]) -> list[str]:
    """The titles of a pair's panels, each once."""
    return list(dict.fromkeys(panel["title"] for panel in pair["panels"]))


ONE_OF_MANY = re.compile(
    r"(?<![\d.,–−])1\s((entity )?pairs|prompts|questions|theories|statements|clusters|facts"
    r"|models)\b"
)
"""A plural after the number one."""

N = re.compile(
    r"n = \d|\d (pair|prompt|text|city|citie|model|question|rule|theory|theorie|statement|cluster"
    r"|interpretation|entity pair)s?\b"
)
"""What counts as saying n."""


def check_first_screen(report: Report, page: str) -> None:
    """The rules of every first screen: sentences, one table, one figure before all others."""
    assert report.glance is not None
    sentences = report.glance.sentences
    assert 0 < len(sentences) <= MOST_SENTENCES, sentences
    assert [one for one in sentences if len(one.split()) > MOST_WORDS] == []
    assert [one for one in sentences if not N.search(one) or not one.endswith(".")] == []
    assert not [one for one in sentences if re.search(r"\bnan\b|undefined|None", one)]
    first, *figure = report.glance.items
    texts = [report.glance.question, *sentences, *map(str, first.on_page.columns)]
    assert [one for one in texts if ONE_OF_MANY.search(one)] == []
    assert isinstance(first, TableItem) and first.name == "at_a_glance"
    numbers = first.frame
    assert 1 <= numbers["number"].nunique() <= 5
    assert not numbers.duplicated(["model", "number"]).any()
    # Every missing number has its reason below the title or, if there is no other, in the table.
    blank = numbers[numbers["value"].isna()]
    some = numbers.groupby("number")["value"].transform("count") > 0
    assert ("Blank: " in first.note) == bool((numbers["value"].isna() & some).any())
    said = " ".join([first.note, *first.on_page.astype(str).to_numpy().ravel()])
    assert all(note.rstrip(".") in said for note in blank["note"] if note)
    assert "undefined" not in first.on_page.astype(str).to_numpy()
    head = page.partition("</header>")[0]
    assert head.index('id="table-at_a_glance"') < head.index("</table>")
    kinds = {FigureItem: "figure", PictureItem: "picture"}
    assert len(figure) == len(re.findall('<article id="(?:figure|picture)-', head))
    assert all(f'id="{kinds[type(one)]}-{one.name}"' in head for one in figure)
    assert head.count("organisms, small models") <= 1
    assert page.count("organisms, small models") <= 1
