"""Read tables with a header row (CSV and TSV files, Excel workbooks), and check its names."""

import csv
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.parsers import expat
from zipfile import ZipFile, is_zipfile

from interp.console import counted, echo
from interp.errors import UserError, one_line, shortened
from interp.lookalikes import lookalike

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
"""Excel writes semicolons where a comma is the decimal mark."""

_SEPARATOR_LINE = re.compile(r'"?sep=([^\w"])', re.IGNORECASE)
"""A first line that tells Excel how cells are separated."""

MOST_UNPACKED = 2**26
"""Largest size in bytes of an unpacked workbook, since a small file can unpack to any size."""

Line = tuple[str, Sequence[object]]
"""The place of a row, such as "line 3", and its cells."""

Cells = Mapping[str, object]
"""Value of each column: text, number, boolean or None."""


class LackingColumnsError(ValueError):
    """A file lacks columns that it must have."""


class Columns(NamedTuple):
    """The columns to read from each file; for the fields, see `interp.prompts.files.read_rows`."""

    required: Sequence[str]
    optional: Sequence[str]
    unnamed: Sequence[str]
    others: bool
    nested: bool

    def of(self, header: Sequence[str]) -> list[str]:
        """The columns to read from a file that has these, each once (or else a ValueError)."""
        counts = Counter(header)
        read = dict.fromkeys([*self.required, *(name for name in self.optional if name in counts)])
        if missing := [name for name in read if name not in counts]:
            raise LackingColumnsError(
                f"it lacks the columns {', '.join(missing)}; it has "
                f"{shortened(', '.join(header), 100) or 'none'}{_why_lacking(header, missing)}"
            )
        chosen = counts if self.others else read
        check_unique({name: counts[name] for name in chosen})
        return list(chosen)


def check_unique(counts: Mapping[str, int]) -> None:
    """Raise a ValueError if a column occurs more than once."""
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise ValueError(
            f"it has the column {shortened(repeated[0], 60)} twice; expected unique names"
        )


def _why_lacking(names: Sequence[str], missing: Iterable[str]) -> str:
    """A hint about why columns are missing, if the existing names suggest one."""
    wanted = set(missing)
    if len(names) == 1 and "|" in names[0]:
        return ". Its cells seem to be separated by another character; expected commas"
    if wanted <= {name.strip() for name in names}:
        return ". Some names have spaces around them; remove the spaces"
    if wanted <= {name.lower() for name in names}:
        return ". Write the names in lower case"
    for name in names:
        if alike := lookalike(name, wanted):
            return f". Rename {shortened(name, 60)!r}: {alike}"
    return ""


def read_csv(file: Path, columns: Columns) -> Iterator[tuple[str, Cells]]:
    """The rows of a CSV or TSV file, each with its line."""
    usual = "\t" if file.suffix.lower() == ".tsv" else ","
    with file.open(encoding="utf-8-sig", newline="") as stream:
        above, start, first = 0, 0, stream.readline()
        while first and not first.strip("\ufeff\r\n "):
            above, start, first = above + 1, stream.tell(), stream.readline()
        declared = _SEPARATOR_LINE.match(first)
        plain = "" if columns.unnamed else re.sub('"[^"]*"', "", first[: 2**20])
        # The character that separates most names; the usual one if no other separates more.
        mark = declared[1] if declared else max((usual, *_SEPARATORS), key=plain.count)
        if declared:
            above += 1
        else:
            stream.seek(start)
        hint = f'; put a cell with {_SEPARATORS.get(mark, repr(mark))} in "quotes"'
        yield from _under_header(_lines(stream, mark, above), columns, hint)


def _lines(stream: Iterable[str], mark: str, before: int) -> Iterator[Line]:
    csv.field_size_limit(sys.maxsize)  # the usual 131,072 characters are fewer than a model reads
    reader = csv.reader(stream, strict=True, delimiter=mark)
    start = before + 1
    try:
        for cells in reader:
            yield f"line {start}", cells
            start = before + reader.line_num + 1
    except csv.Error as error:
        unclosed = " in a cell whose opening quotation mark is not closed"
        why = f"{error}{unclosed * ('end of data' in str(error))}"
        raise ValueError(f"line {start}: {why}") from error


def read_workbook(file: Path, columns: Columns) -> Iterator[tuple[str, Cells]]:
    """The rows of the only sheet of an Excel workbook that has cells, each with its row number.

    Formulas have the values that Excel stored. Hidden sheets are ignored, and hidden rows and
    columns are read; notes say so.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UserError(
            "Excel files require openpyxl, which is not installed; run pip install "
            "'interp[excel]', or save the sheet as CSV (UTF-8)"
        ) from error
    if not is_zipfile(file):
        raise ValueError("it is not a workbook as Excel saves it, or it has a password")
    with ZipFile(file) as archive:
        size = sum(part.file_size for part in archive.infolist())
        if size > MOST_UNPACKED:
            raise ValueError(
                f"it unpacks to {size:,} bytes; expected at most {MOST_UNPACKED:,}. Save it as CSV"
            )
        parts = _parts_of(archive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about formats and validations, which are not read
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        try:
            visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            tops = {sheet.title: top for sheet in visible if (top := _header_of(sheet))}
            if len(tops) != 1:
                raise ValueError(
                    f"{counted(len(tops), 'sheet')} have cells"
                    f"{': ' * bool(tops)}{', '.join(tops)}; expected exactly one: save the one "
                    "to read as CSV (UTF-8), or hide the others"
                )
            ((title, (above, header)),) = tops.items()
            part = parts[book[title]._worksheet_path]
            state = file, file.stat().st_mtime_ns
            hidden = tuple(sheet.title for sheet in book.worksheets if sheet not in visible)
            _tell(state, "hidden sheet", "not read", hidden)
            but_read = "hidden in Excel, but read like the others"
            _tell(state, "row", but_read, tuple(str(row) for row in part.hidden if row > above))
            columns_hidden = [name for n, name in enumerate(header, 1) if n in part.hidden_columns]
            _tell(state, "column", but_read, tuple(map(str, columns_hidden)))
            rows = _sheet_rows(book[title], above, header, part)
            yield from _under_header(rows, columns)
        finally:
            book.close()


def _header_of(sheet: "ReadOnlyWorksheet") -> tuple[int, list[object]] | None:
    """The number of the first row that has text, and its cells; None if there is no such row."""
    sheet.reset_dimensions()  # a file can state any
    rows = islice(sheet.iter_rows(values_only=True), 100)
    return next(((n, row) for n, cells in enumerate(rows, 1) if (row := _trimmed(cells))), None)


@lru_cache(maxsize=64)
def _tell(state: tuple[Path, int], what: str, done: str, hidden: tuple[str, ...]) -> None:
    """Say what Excel does not show, once for a file in the same state."""
    if hidden:
        shown = one_line(", ".join(hidden), 100)
        echo(f"{state[0].name}: {counted(len(hidden), what)} {done}: {shown}")


_WITHOUT_VALUE = object()
"""A cell with a formula and no stored value."""


def _sheet_rows(
    sheet: "ReadOnlyWorksheet", above: int, header: Sequence[object], part: "_Part"
) -> Iterator[Line]:
    from openpyxl.utils import get_column_letter

    letters = [get_column_letter(column) for column in range(1, len(header) + 1)]
    yield f"row {above}", header
    # Unbounded, openpyxl fills 16,384 cells of each row with a cell in the last column.
    rows = sheet.iter_rows(min_row=above + 1, max_col=len(header) + 16, values_only=True)
    for number, cells in enumerate(islice(rows, _MOST["row"]), above + 1):
        line = [*cells, *[None] * (len(header) - len(cells))]
        for column, letter in enumerate(letters) if part.formulas else ():
            if f"{letter}{number}" in part.formulas:
                line[column] = _WITHOUT_VALUE
        if line.count(None) < len(line):  # quickly, as there may be a million
            yield f"row {number}", line


def _under_header(
    lines: Iterable[Line], columns: Columns, hint: str = ""
) -> Iterator[tuple[str, Cells]]:
    """The rows below the header as cells by column; empty rows and empty last cells are left out.

    With `columns.unnamed`, there may be no header. `hint` says what to do about too many cells.
    """
    lines = iter(lines)
    first, cells = next(lines, ("", ()))
    header = [str(cell) if _has_text(cell) else "" for cell in cells]
    if columns.unnamed and not set(header) & set(columns.unnamed):
        lines = chain([(first, cells)], lines)
        header = list(columns.unnamed[: len(header)])
    names = [str(name) for name in _trimmed(header)]
    if len(names) < len(header) or len(names) == 1:
        hint = "; the first line must name each column that has text"
    read = columns.of(names)
    for place, cells in lines:
        if not (filled := _trimmed(cells)):
            continue
        more = len(filled) > len(names)
        if more or len(cells) < len(names):
            count = counted(len(filled if more else cells), "cell")
            raise ValueError(f"{place} has {count}; expected {len(names)}{hint * more}")
        row = dict(zip(names, cells, strict=False))
        for column in read:
            if row[column] is _WITHOUT_VALUE:
                raise ValueError(
                    f"{place}: {column} is a formula without a stored value; open the workbook in "
                    "Excel and save it, or save the sheet as CSV (UTF-8)"
                )
        yield place, {column: row[column] for column in read}


def _trimmed(cells: Sequence[object]) -> list[object]:
    """The cells without empty ones at the end, which Excel writes for formatted columns."""
    last = next((n for n in range(len(cells), 0, -1) if _has_text(cells[n - 1])), 0)
    return list(cells[:last])


def _has_text(cell: object) -> bool:
    return cell is not None and bool(str(cell).strip())


_MOST = {"row": 2**20, "si": 2**20, "within": 2**16, "other": 2**18}
"""Largest numbers of rows, of texts (`si`), of cells and their values within a row, and of other
elements of a part, such as styles. Excel's sheets have up to 2**20 rows of 2**14 cells."""

_OF_CELLS = frozenset({"c", "v", "f", "is", "t"})


class _Part:
    """A part of a workbook, read before openpyxl does and without keeping it.

    A small file can unpack to any number of elements, each of which takes openpyxl much memory.
    """

    def __init__(self) -> None:
        # The numbers of rows and columns that Excel hides, such as by a filter.
        self.hidden: list[int] = []
        self.hidden_columns: set[int] = set()
        # The places, such as B3, of cells with a formula and no stored value.
        self.formulas: set[str] = set()
        # The cell, and the elements within it so far.
        self._cell: Mapping[str, str] = {}
        self._inside: set[str] = set()
        self._counts: Counter[str] = Counter()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Notice the beginning of an element; refuse too many of its kind."""
        name = name.rpartition(" ")[2]
        kind = "within" if name in _OF_CELLS else name if name in _MOST else "other"
        if kind != "within":
            self._counts["within"] = 0
        self._counts[kind] += 1
        if self._counts[kind] > _MOST[kind]:
            raise ValueError(f"it has too many elements {name}; save the sheet as CSV")
        hides = attributes.get("hidden") in ("1", "true")
        if name == "row" and hides:
            self.hidden.append(int(attributes.get("r", 0)))
        if name == "col" and hides:
            last = min(int(attributes.get("max", 0)), 2**14)
            self.hidden_columns.update(range(int(attributes.get("min", 0)), last + 1))
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


def _parts_of(archive: ZipFile) -> dict[str, _Part]:
    parts: dict[str, _Part] = {}
    for name in archive.namelist():
        with archive.open(name) as stream:
            if b"<" not in stream.read(4):
                continue
            stream.seek(0)
            parts[name], parser = _Part(), expat.ParserCreate(namespace_separator=" ")
            parser.buffer_text = True
            parser.StartElementHandler = parts[name].start
            parser.CharacterDataHandler = parts[name].text
            parser.EndElementHandler = parts[name].end
            parser.ParseFile(stream)
    return parts
