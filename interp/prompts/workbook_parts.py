"""What openpyxl does not tell about the parts of a workbook: read before it, without keeping them.

A small file can unpack to any number of elements, each of which takes openpyxl much memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.parsers import expat
from zipfile import ZipFile

MOST_UNPACKED = 2**26
"""Largest size in bytes of an unpacked workbook."""

_MOST_WITHIN = 2**16
"""Largest number of cells and their values in a row, which has up to 2**14 cells in Excel."""

_MOST_STRINGS = 2**20
"""Largest number of texts, and of rows, as many as an Excel sheet has."""

_MOST_OTHERS = 2**18
"""Largest number of other elements of a part, such as styles."""

_OF_CELLS = frozenset({"c", "v", "f", "is", "t"})


@dataclass
class Part:
    """A part of a workbook while it is read; only sheets have rows and cells."""

    hidden: list[int] = field(default_factory=list)
    """The numbers of the rows that Excel hides, such as by a filter."""
    formulas: set[tuple[int, int]] = field(default_factory=set)
    """The row and column of each cell with a formula and no stored value, from 1."""
    _row: int = 0
    _column: int = 0
    _kind: str = ""
    _inside: frozenset[str] = frozenset()
    """The elements within the cell so far."""
    _counts: dict[str, int] = field(default_factory=lambda: {"row": 0, "si": 0, "other": 0})
    _within: int = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Notice the beginning of an element.

        Raises:
            ValueError: there are too many of its kind.
        """
        name = name.rpartition(" ")[2]
        if name in _OF_CELLS:
            self._within += 1
            if self._within > _MOST_WITHIN:
                raise ValueError(f"row {self._row} has too many cells; save the sheet as CSV")
            if name == "c":
                self._begin_cell(attributes)
            self._inside |= {name}
        else:
            self._within = 0
            kind = name if name in self._counts else "other"
            self._counts[kind] += 1
            if self._counts[kind] > (_MOST_OTHERS if kind == "other" else _MOST_STRINGS):
                raise ValueError(f"it has too many elements {name}; save the sheet as CSV")
        if name == "row":
            self._row, self._column, self._cells = (
                int(float(attributes.get("r", self._row + 1))),
                0,
                0,
            )
            if attributes.get("hidden") in ("1", "true"):
                self.hidden.append(self._row)

    def _begin_cell(self, attributes: Mapping[str, str]) -> None:
        letters = [ord(one) - 64 for one in attributes.get("r", "")[:9] if one.isalpha()]
        self._column = (
            sum(own * 26**n for n, own in enumerate(reversed(letters))) or self._column + 1
        )
        self._kind, self._inside = attributes.get("t", ""), frozenset()

    def text(self, text: str) -> None:
        """Notice that an element has text."""
        if text.strip() and "v" in self._inside:
            self._inside |= {"text"}

    def end(self, name: str) -> None:
        """Notice the end of an element. An empty text is a value, but an empty number is none."""
        stored = "text" in self._inside or ("v" in self._inside and self._kind == "str")
        if name.rpartition(" ")[2] == "c" and "f" in self._inside and not stored:
            self.formulas.add((self._row, self._column))


def parts_of_workbook(file: Path) -> dict[str, Part]:
    """The parts in XML by name.

    Raises:
        ValueError: the workbook is too large, or a part is no XML.
    """
    with ZipFile(file) as archive:
        size = sum(part.file_size for part in archive.infolist())
        if size > MOST_UNPACKED:
            raise ValueError(
                f"it unpacks to {size:,} bytes; expected at most {MOST_UNPACKED:,}. Save it as CSV"
            )
        found = {}
        for name in archive.namelist():
            with archive.open(name) as stream:
                if b"<" in stream.read(4):
                    stream.seek(0)
                    found[name] = _part(stream)
    return found


def _part(stream: IO[bytes]) -> Part:
    part, parser = Part(), expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = part.start
    parser.CharacterDataHandler = part.text
    parser.EndElementHandler = part.end
    parser.buffer_text = True
    parser.ParseFile(stream)
    return part
