"""Plain tables of texts: a row for each text, in any file that `interp.prompts.files` reads."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from interp.errors import UserError, described
from interp.prompts.columns import Cells
from interp.prompts.files import Row, read_rows
from interp.stored.output import Output, ending

COLUMNS = ("prompt", "text", "draw", "thought", "answer", "model", "finished")
"""The prompt's id and its text, one of which is required; the index of the draw; the thought and
the answer, one of which is required; the model; `length` if the text was cut off. A prompt may also
be named by its text, and the column by `prompt_id`."""

_ID = "prompt_id"


def outputs_of_table(file: Path) -> Iterator[Output]:
    """The texts of a table.

    Raises:
        UserError: the table cannot be read, lacks a column, or a cell is of the wrong type.
    """
    rows = read_rows(file, (), optional=(*COLUMNS, _ID))
    columns = rows[0].cells.keys()
    for needed in (("prompt", _ID, "text"), ("answer", "thought")):
        if not columns & set(needed):
            raise UserError(
                f"{file} has no column {' or '.join(needed)}; expected a table with some of "
                f"{', '.join(COLUMNS)}, or texts as vLLM, OpenAI-like servers, Anthropic, Gemini, "
                "Inspect or lm-eval store them"
            )
    for row in rows:
        yield Output(
            f"{file.name}, {row.where.rpartition(', ')[2]}",
            _text(row, "answer") or "",
            prompt_id=_text(row, _ID) or _text(row, "prompt") or None,
            prompt=_text(row, "text") or None,
            model=_text(row, "model") or None,
            draw=_draw(row),
            thought=_text(row, "thought"),
            finished=ending(_text(row, "finished")),
        )


def _text(row: Row, column: str) -> str | None:
    """A cell as text; ids may be numbers."""
    cell = _present(row.cells, column)
    if cell is None or isinstance(cell, str):
        return cell
    if column in ("prompt", _ID) and isinstance(cell, int):
        return str(cell)
    raise UserError(f"{row.where}: {column} is {described(cell)}; expected text")


def _draw(row: Row) -> int:
    cell = _present(row.cells, "draw")
    if cell is None or cell == "":
        return 0
    if re.fullmatch(r"[0-9]{1,9}(\.0)?", str(cell)) and not isinstance(cell, bool):
        return int(float(str(cell)))
    raise UserError(f"{row.where}: draw is {described(cell)}; expected a whole number from 0")


def _present(cells: Cells, column: str) -> object:
    """A cell; None if it is missing."""
    cell = cells.get(column)
    return None if isinstance(cell, float) and math.isnan(cell) else cell
