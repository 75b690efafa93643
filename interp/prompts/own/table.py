"""The rows of the user's own table: a file, a folder of files, or a data frame.

Whatever the source, the same cells are accepted. Every cell must have text, since a prompt without
one of its parts would differ from the others in more than what its factors say.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from interp.errors import UserError, kind_of, shortened
from interp.lookalikes import UNREADABLE, is_blank
from interp.prompts.files import Row, as_written, check_cell, read_rows
from interp.prompts.own.layout import FACTS, NAMELESS, REQUIRED
from interp.prompts.sheets import check_unique

Source = str | Path | pd.DataFrame
"""A file, a folder or hub name (`interp.prompts.files`), or a data frame."""

_NO_VALUE = frozenset(
    "nan NaN <NA> NaT #N/A #NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM!".split()  # noqa: SIM905
)
"""What pandas and Excel write in place of a value."""


class Table(NamedTuple):
    """A table with the same columns in every row."""

    columns: tuple[str, ...]
    rows: list[Row]
    """The rows that are not empty; a cell may still be empty."""
    framed: bool
    """Whether the rows come from a data frame."""

    def texts(self, row: Row) -> dict[str, str]:
        """The text of each cell of a row; all must be readable, and none empty."""
        texts = {column: text_of(row.cells.get(column)) for column in self.columns}
        for column, text in texts.items():
            name = shortened(column, 60)
            check_cell(name, _plain(row.cells.get(column)))
            # In two columns, such a word can be an answer.
            marked = text in _NO_VALUE and column not in ("gold", "answer")
            if marked or is_blank(text):
                got = f"{text!r}, which stands for a missing value" if marked else "empty"
                pandas = (
                    ". pandas reads texts such as NA, None and null as empty, unless read_csv gets "
                    "keep_default_na=False"
                )
                raise UserError(
                    f"{name} is {got}; expected a text in every row. Write one, or remove the "
                    "column; parts that only some prompts have can be marked in a column text"
                    f"{pandas * self.framed}"
                )
            _check_readable(name, text)
        return texts


def table_of(source: Source, required: Sequence[str]) -> Table:
    """The rows with all their columns; a UserError if a file lacks one that is required."""
    if not isinstance(source, str | Path | pd.DataFrame):
        raise UserError(
            f"the table is {kind_of(source)}; expected a file or a data frame, such as "
            "pandas.DataFrame(rows)"
        )
    if isinstance(source, pd.DataFrame):
        rows = _rows_of(source)
    else:
        rows = read_rows(source, required, others=True)
    rows = [row for row in rows if not all(map(_is_empty, row.cells.values()))]
    if not rows:
        raise UserError("the table has no rows with text; expected at least one")
    # The files of a folder may have different columns.
    names = dict.fromkeys(name for row in rows for name in row.cells)
    # Spreadsheets write columns without name and text beside a table.
    columns = tuple(
        name
        for name in names
        if not NAMELESS.fullmatch(name.strip())
        or not all(_is_empty(row.cells.get(name)) for row in rows)
    )
    for name in columns:
        _check_readable("the name of a column", name)
    return Table(columns, rows, isinstance(source, pd.DataFrame))


def holds_pairs(source: str) -> bool:
    """Whether the columns of a local file identify it as a user's own table, not published data."""
    try:
        if not Path(source).is_file():
            return False
        columns = set(read_rows(source, (), others=True)[0].cells)
    except (UserError, OSError, ValueError):
        return False
    # A table that lacks one of the columns still counts, so that an error names the column.
    return len(columns & set(REQUIRED)) >= 2 or columns >= set(FACTS)


def _rows_of(frame: pd.DataFrame) -> list[Row]:
    names = [str(name) for name in frame.columns]
    try:
        check_unique(Counter(names))
    except ValueError as error:
        raise UserError(f"cannot read the data frame: {error}") from error
    # Columns of one type each, so that whole numbers do not become fractions.
    columns: Iterable[list[Any]] = (
        as_written(column.tolist(), _kind_of_cells(column.dtype)) for _, column in frame.items()
    )
    return [
        Row(f"row {number}", dict(zip(names, cells, strict=True)))
        for number, cells in enumerate(zip(*columns, strict=True), start=1)
    ]


def _kind_of_cells(dtype: Any) -> Any:
    """What pandas' own dtypes hold: the dtype of categories, and of sparse or nullable numbers."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _kind_of_cells(dtype.categories.dtype)
    if isinstance(dtype, pd.ArrowDtype):
        values = getattr(dtype.pyarrow_dtype, "value_type", None)  # of a dictionary, or of runs
        if values is not None:
            return _kind_of_cells(pd.ArrowDtype(values))
    return getattr(dtype, "subtype", getattr(dtype, "numpy_dtype", dtype))


def _is_empty(cell: object) -> bool:
    return is_blank(text_of(cell))


def text_of(cell: object) -> str:
    """The text of a cell, with 3.0 written as 3; "" for a missing value.

    pandas stores a column of integers as floats if any of its cells is empty.
    """
    value = _plain(cell)
    if value is None:
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _plain(cell: Any) -> object:
    """A cell as Python's own type; None for a missing value."""
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return None
    return cell.item() if isinstance(cell, np.generic) else cell


def _check_readable(name: str, text: str) -> None:
    if unreadable := UNREADABLE.search(text):
        raise UserError(
            f"{name} holds the character {unreadable[0]!r} at position {unreadable.start() + 1} "
            f"({shortened(text, 60)!r}), which no text should hold; remove it"
        )


def described(source: Source) -> str:
    """The table's source, for records."""
    return "a data frame" if isinstance(source, pd.DataFrame) else str(source)
