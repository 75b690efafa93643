"""The rows of the user's own table: a file, a folder of files, or a data frame."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from interp.errors import UserError, kind_of
from interp.prompts.files import Row, read_rows

Source = str | Path | pd.DataFrame
"""A file, a folder or hub name (`interp.prompts.files`), or a data frame."""


def rows_of(source: Source, required: Sequence[str]) -> list[Row]:
    """The rows with all their columns.

    Raises:
        UserError: the table cannot be read, has no rows, or is a file that lacks a required column.
    """
    if not isinstance(source, str | Path | pd.DataFrame):
        raise UserError(
            f"the table is {kind_of(source)}; expected a file or a data frame, such as "
            "pandas.DataFrame(rows)"
        )
    if not isinstance(source, pd.DataFrame):
        return read_rows(source, required, others=True)
    if source.empty:
        raise UserError("the data frame has no rows; expected at least one")
    records = source.to_dict("records")
    return [
        Row(f"row {number}", {str(name): cell for name, cell in record.items()})
        for number, record in enumerate(records, start=1)
    ]


def texts_of(cells: Mapping[str, Any]) -> dict[str, str]:
    """The text of each cell; empty cells are omitted."""
    return {
        column: _text(cell)
        for column, cell in cells.items()
        if not (pd.api.types.is_scalar(cell) and pd.isna(cell)) and str(cell).strip()
    }


def _text(cell: object) -> str:
    """The text of a cell, with 3.0 written as 3.

    pandas stores a column of integers as floats if any of its cells is empty.
    """
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def described(source: Source) -> str:
    """The table's source, for records."""
    return "a data frame" if isinstance(source, pd.DataFrame) else str(source)
