"""What openpyxl does not tell about the parts of a workbook: read before it, without keeping them.

A small file can unpack to any number of elements, each of which takes openpyxl much memory.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from zipfile import ZipFile

_MOST = {"row": 2**20, "si": 2**20, "within": 2**16, "other": 2**18}
"""Largest numbers of rows, of texts (`si`), of cells and their values within a row, and of other
elements of a part, such as styles. Excel's sheets have up to 2**20 rows of 2**14 cells."""

_OF_CELLS = frozenset({"c", "v", "f", "is", "t"})


@dataclass
class Part:
    """A part of a workbook while it is read; only sheets have rows and cells."""

    hidden: list[int] = field(default_factory=list)
    """The numbers of the rows that Excel hides, such as by a filter."""
    formulas: set[str] = field(default_factory=set)
    """The places, such as B3, of cells with a formula and no stored value."""
    _cell: Mapping[str, str] = field(default_factory=dict)
    _inside: set[str] = field(default_factory=set)
    """The elements within the cell so far."""
    _counts: Counter[str] = field(default_factory=Counter)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Notice the beginning of an element.

        Raises:
            ValueError: there are too many of its kind.
        """
        name = name.rpartition(" ")[2]
        kind = "within" if name in _OF_CELLS else name if name in _MOST else "other"
        if kind != "within":
            self._counts["within"] = 0
        self._counts[kind] += 1
        if self._counts[kind] > _MOST[kind]:
            raise ValueError(f"it has too many elements {name}; save the sheet as CSV")
        if name == "row" and attributes.get("hidden") in ("1", "true"):
            self.hidden.append(int(attributes.get("r", 0)))
        if name == "c":
            self._cell, self._inside = attributes, set()
        self._inside.add(name)

    def text(self, text: str) -> None:
        """Notice that an element has text."""
        if "v" in self._inside and text.strip():
            self._inside.add("text")

    def end(self, name: str) -> None:
        """Notice the end of an element. An empty text is a value, but an empty number is none."""
        stored = {"text"} if self._cell.get("t") != "str" else {"text", "v"}
        if name.rpartition(" ")[2] == "c" and "f" in self._inside and not stored & self._inside:
            self.formulas.add(self._cell.get("r", ""))


def parts_of_workbook(file: Path) -> dict[str, Part]:
    """The parts in XML by name.

    Raises:
        ValueError: a part has too many elements.
        expat.ExpatError: a part is no XML.
    """
    found: dict[str, Part] = {}
    with ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as stream:
                if b"<" not in stream.read(4):
                    continue
                stream.seek(0)
                found[name], parser = Part(), expat.ParserCreate(namespace_separator=" ")
                parser.buffer_text = True
                parser.StartElementHandler = found[name].start
                parser.CharacterDataHandler = found[name].text
                parser.EndElementHandler = found[name].end
                parser.ParseFile(stream)
    return found
