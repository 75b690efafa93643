"""Read and write tables: CSV, TSV, JSON, JSONL, Parquet and Excel files, folders, hub data sets.

Files are not trusted: whatever they contain, the result is rows or a `UserError`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from interp.errors import UserError, kind_of, shortened
from interp.files import check_fits, write_whole, writing
from interp.prompts.sheets import Cells, Columns, read_csv, read_workbook

if TYPE_CHECKING:
    import pandas as pd

S = TypeVar("S")
T = TypeVar("T")


SHOWN = 3
"""Number of invalid rows that a message quotes; it also states how many there are."""


class Row(NamedTuple):
    """One row of a table."""

    where: str
    """Location of the row, such as "pairs.csv, line 3"."""
    cells: Cells
    """Value of each column: text, number, boolean or None."""


def read_rows(
    source: str | Path,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    unnamed: Sequence[str] = (),
    others: bool = False,
    nested: bool = False,
) -> list[Row]:
    """The rows of a file, a folder of files or a hub data set.

    Args:
        source: a path, or the name of a data set on the hub (owner/name).
        columns: the columns that every file must have.
        optional: columns that are read if a file has them.
        unnamed: the columns, in order, of CSV files without a header; by default, every CSV file
            must have a header. The last columns may be missing from a file without a header.
        others: whether to read all other columns as well, in the file's order.
        nested: whether cells may contain lists and objects.

    Raises:
        UserError: the source cannot be read, a file lacks a column, there are no rows, or, unless
            `nested`, a cell contains a list or an object.
    """
    wanted = Columns(columns, optional, unnamed, others, nested)
    rows = [row for file in _files(str(source)) for row in _read(file, wanted)]
    if not rows:
        raise UserError(f"{shortened(str(source))} has no rows; expected at least one")
    return rows


def parse_each(items: Iterable[tuple[str, S]], parse: Callable[[S], T]) -> list[T]:
    """The result of `parse` for each item, passed as (place, item).

    Raises:
        UserError: `parse` rejected an item; the message counts all such items and quotes the first
            few.
    """
    parsed: list[T] = []
    wrong: list[str] = []
    for where, item in items:
        try:
            parsed.append(parse(item))
        except UserError as error:
            wrong.append(f"{where}: {error}")
    refuse(wrong, f"{len(wrong):,} invalid rows, starting with:")
    return parsed


def refuse(wrong: Sequence[str], head: str) -> None:
    """Raise a UserError with the first few lines, under a head if there are several."""
    if len(wrong) > 1:
        raise UserError("\n  ".join([head, *wrong[:SHOWN]]))
    if wrong:
        raise UserError(wrong[0])


def read_json(text: str) -> Any:
    """The value that a JSON text represents.

    Raises:
        json.JSONDecodeError: the text is not JSON.
        ValueError: an object has two values for one key, a string has an unpaired
            surrogate, or it is nested too deeply.
    """
    try:
        value = _DECODER.decode(text)
        if "\\ud" in text.lower():  # only an escape can write half of a character
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise ValueError(f"it holds {half}, which is half of a character; correct it") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; of a key with two values, Python would keep the last."""
    fields = dict(pairs)
    for name, value in pairs if len(fields) < len(pairs) else ():
        if repr(value) != repr(fields[name]):
            raise ValueError(
                f"{_quoted(name)} is given twice in one object, as {_quoted(value)} and "
                f"{_quoted(fields[name])}; remove one"
            )
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def write_table(frame: "pd.DataFrame", file: Path) -> None:
    """Write a table in the format of the file's suffix."""
    check_writable(file)
    write_whole(file, lambda path: _WRITERS[file.suffix](frame, path))


def check_writable(file: Path) -> None:
    """Reject a name that `write_table` would reject, before the table is created."""
    if file.suffix not in _WRITERS:
        raise UserError(f"cannot write {file}: expected a name that ends in {', '.join(_WRITERS)}")
    with writing(file):
        exists = file.parent.is_dir()
    if not exists:
        raise UserError(f"cannot write {file}: the folder {file.parent} does not exist; create it")


_WRITERS: "dict[str, Callable[[pd.DataFrame, Path], object]]" = {
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
    ".csv": lambda frame, path: frame.to_csv(path, index=False, lineterminator="\n"),
    ".jsonl": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, force_ascii=False
    ),
}


def _files(source: str) -> list[Path]:
    if not source.strip():
        raise UserError(f"the name of the data is empty; {_EXPECTED}")
    path = Path(source)
    try:
        exists = path.exists()
    except (OSError, ValueError) as error:  # a name that no file system accepts
        raise UserError(f"no data at {shortened(source)!r} ({_reason(error)})") from error
    if not exists:
        path = _download(source)
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _READERS
        and not file.name.startswith((".", "dataset_info"))
        and file.is_file()
    )
    if not files:
        shown = shortened(str(path))
        raise UserError(f"{shown} holds no data file; expected {', '.join(_READERS)}")
    return files


def _download(name: str) -> Path:
    if name.count("/") != 1 or Path(name).suffix.lower() in _READERS | _WORKBOOKS:
        raise UserError(f"no data at {shortened(name)!r}; {_EXPECTED}")
    from huggingface_hub import snapshot_download  # slow to import, so only here

    try:
        patterns = [f"*{suffix}" for suffix in _READERS]
        return Path(snapshot_download(name, repo_type="dataset", allow_patterns=patterns))
    except Exception as error:  # the hub's client passes on errors raised by its libraries
        raise UserError(
            f"the data set {shortened(name)!r} is neither a local path nor available from the hub "
            f"({_reason(error)}); download it and use its path"
        ) from error


def _read(file: Path, columns: Columns) -> Iterator[Row]:
    shown = shortened(str(file))
    suffix = file.suffix.lower()
    if suffix in _OTHER_SPREADSHEETS and file.is_file():
        raise UserError(
            f"cannot read {shown}: of spreadsheets, only .xlsx can be read; save it as .xlsx, or "
            "as CSV (UTF-8)"
        )
    readers = _READERS | _WORKBOOKS
    if suffix not in readers or not file.is_file():
        raise UserError(f"cannot read {shown}; expected a file that ends in {', '.join(readers)}")
    check_fits(file)
    try:
        rows = list(readers[suffix](file, columns))
    except UserError:
        raise
    except Exception as error:  # the libraries can raise any error for a damaged file
        raise UserError(f"cannot read {shown}: {_reason(error)}") from error
    for place, cells in rows:
        for column, value in cells.items():
            if not columns.nested:
                check_cell(f"{shown}, {place}: {column}", value)
        yield Row(f"{shown}, {place}", cells)


def check_cell(name: str, value: object) -> None:
    """Raise a UserError for a list, a date or another value but text, number, boolean and None."""
    if not isinstance(value, str | int | float | None):
        joined = ""
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            joined = f", such as {_quoted('|'.join(value))}"
        raise UserError(
            f"{name} is {_quoted(value)}, {kind_of(value)}; expected text, a number, true or "
            f"false{joined}"
        )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not in UTF-8; save it as UTF-8"
    text = getattr(error, "strerror", None) or str(error)
    return shortened(" ".join(text.split()), 300)


def _quoted(value: object) -> str:
    return shortened(repr(value), 60)


def _read_jsonl(file: Path, columns: Columns) -> Iterator[tuple[str, Cells]]:
    with file.open(encoding="utf-8-sig") as stream:
        lines = [(f"line {number}", line) for number, line in enumerate(stream, start=1)]
    return _records([(place, _json(place, line)) for place, line in lines if line.strip()], columns)


def _read_json(file: Path, columns: Columns) -> Iterator[tuple[str, Cells]]:
    data = _json("it", file.read_text(encoding="utf-8-sig"))
    if isinstance(data, dict):
        data = _by_row(data, columns)
    if not isinstance(data, list):
        raise ValueError(
            f"it holds {_quoted(data)}; expected a list of objects, one per row, or an object of "
            "columns"
        )
    return _records([(f"row {n}", record) for n, record in enumerate(data, start=1)], columns)


def _json(place: str, text: str) -> object:
    try:
        return read_json(text)
    except ValueError as error:
        at = str(error)
        if isinstance(error, json.JSONDecodeError) and error.lineno == 1:
            at = f"{error.msg}, column {error.colno}"  # `place` has the number of a single line
        raise ValueError(f"{place} is not JSON: {at}") from error


def _records(records: Sequence[tuple[str, Any]], columns: Columns) -> Iterator[tuple[str, Cells]]:
    """The rows of a list of objects; a missing column is empty."""
    for place, record in records:
        if not isinstance(record, dict):
            raise ValueError(f"{place} is {_quoted(record)}; expected an object of columns")
    names = dict.fromkeys(name for _, cells in records for name in cells)
    chosen = columns.of(list(names)) if records else []
    for place, cells in records:
        yield place, {column: cells.get(column) for column in chosen}


def _by_row(data: dict[str, object], columns: Columns) -> list[dict[str, object]]:
    """The rows of an object of columns; a column is a list, or an object with one key per row."""
    rows: dict[object, dict[str, object]] = {}
    chosen = columns.of(list(data))
    if data and not chosen:
        raise ValueError(
            f"none of its keys {shortened(', '.join(data), 100)} is a known column; expected a "
            "list of objects, one per row, or an object of columns"
        )
    for column in chosen:
        cells = data[column]
        cells = dict(enumerate(cells)) if isinstance(cells, list) else cells
        if not isinstance(cells, dict):
            raise ValueError(f"the column {column} is {_quoted(cells)}; expected a list of cells")
        for name, cell in cells.items():
            rows.setdefault(name, {})[column] = cell
    return list(rows.values())


def _read_parquet(file: Path, columns: Columns) -> Iterator[tuple[str, Cells]]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    # The file is opened here, since pyarrow mistakes some names for URLs. It is not read by pandas,
    # whose metadata in the file may be damaged.
    with file.open("rb") as stream, pq.ParquetFile(stream) as parquet:
        read = columns.of(parquet.schema_arrow.names)
        table = parquet.read(columns=read)
    cells = {}
    for name in read:
        column, kind = table.column(name).to_pylist(), table.column(name).type
        floats = pa.types.is_floating(kind)
        cells[name] = as_written(column, np.dtype(kind.to_pandas_dtype())) if floats else column
    for number in range(table.num_rows):  # a file may have rows but no columns to read
        yield f"row {number + 1}", {column: cells[column][number] for column in read}


def as_written(column: list[Any], kind: object) -> list[Any]:
    """A column whose floats of 16 or 32 bits are as written: 1.1, and not 1.100000023841858.

    `kind` is the dtype from which those of its cells that are Python's own floats were made.
    """
    import numpy as np

    few = (np.float16, np.float32)
    made: Any = kind.type if isinstance(kind, np.dtype) and kind.type in few else None
    narrow = (made(cell) if made and isinstance(cell, float) else cell for cell in column)
    return [float(str(cell)) if isinstance(cell, few) else cell for cell in narrow]


_READERS: dict[str, Callable[[Path, Columns], Iterator[tuple[str, Cells]]]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".json": _read_json,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
}

_WORKBOOKS = dict.fromkeys((".xlsx", ".xlsm"), read_workbook)
"""Readers of files that are read alone; folders and data sets may hold workbooks besides data."""

_OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods")

_EXPECTED = (
    f"expected a {', '.join(_READERS | _WORKBOOKS)} file, a folder of such files, or the name of a "
    "data set on the hub (owner/name)"
)
