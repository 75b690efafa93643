"""Read the texts that other tools stored, whatever the file is called.

JSON is told by its keys (`KINDS`); what is neither JSON nor a log of Inspect is a table. Files are
not trusted: whatever they contain, the result is texts or a `UserError`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from json import JSONDecodeError
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, JsonValue

from interp.console import echo
from interp.errors import UserError, one_line, shortened
from interp.files import check_fits, reading
from interp.prompts.files import read_rows
from interp.prompts.own.table import text_of
from interp.stored.inspect_log import Records, is_archive, is_log, outputs_of_log
from interp.stored.lines import KINDS, record_reader
from interp.stored.output import NOT_CUT, Ending, Output, ending
from interp.stored.schema import Stored, checked, parsed, reason_of

LONGEST_LINE = 2**26
"""Largest number of bytes of a line, which holds the texts on one prompt."""

COLUMNS = ("prompt", "text", "draw", "thought", "answer", "model", "finished")
"""The prompt's id and its text, one of which is required; the index of the draw; the thought and
the answer, one of which is required; the model; `length` if the text was cut off, else `stop`. A
prompt may also be named by its text, and columns by `prompt_id` and `finish_reason`; `error` says
why there is neither thought nor answer."""


def read_outputs(file: Path) -> list[Output]:
    """The texts in a file, in its order (UserError: there are none, or the file is damaged)."""
    if not file.is_file():
        raise UserError(
            f"no file at {shortened(str(file))!r}; expected texts that another tool stored, such "
            "as vLLM's batch output, an Inspect log, samples of lm-eval or a table"
        )
    check_fits(file)
    outputs = list(_outputs(file))
    if not outputs:
        raise UserError(f"{file} holds no texts; expected at least one")
    filters = dict.fromkeys(output.filter for output in outputs)
    return outputs if len(filters) == 1 else _of_one_filter(file, outputs, tuple(filters))


def _of_one_filter(file: Path, outputs: list[Output], filters: tuple[str, ...]) -> list[Output]:
    """The texts that lm-eval stored once for each filter, once and as the model wrote them."""
    echo(
        f"{file} holds each text once for each filter of lm-eval "
        f"({one_line(', '.join(filters), 120)}); the texts are read once, as the model wrote them"
    )
    first: dict[tuple[str | None, str | None], str] = {}
    return [
        replace(output, chosen=None) if output.text else output
        for output in outputs
        if first.setdefault((output.prompt_id, output.prompt), output.filter) == output.filter
    ]


def _outputs(file: Path) -> Iterator[Output]:
    if is_archive(file):
        return outputs_of_log(file)
    first, records = records_of(file)
    if is_log(first):
        return outputs_of_log(file, first)
    return _of_table(file) if record_reader(first) is None else _of_records(records)


def records_of(file: Path) -> tuple[object, Records]:
    """The first JSON document of a file, None for what is no JSON, and all, with their places.

    These are the entries of a list, lines, or a single document. A UserError says that the file is
    empty, or begins like JSON but is none; lines are checked when they are read.
    """
    with reading(file), file.open("rb") as stream:
        lines = iter(lambda: stream.readline(LONGEST_LINE + 1), b"")
        stripped = (line.removeprefix(b"\xef\xbb\xbf").strip() for line in lines)
        first = next(filter(None, stripped), None)
    if first is None:
        raise UserError(f"{file} is empty; expected what another tool stored")
    if first[:1] not in (b"{", b"["):
        return None, iter(())
    try:
        document = parsed(str(file), first)
    except UserError as error:
        if not isinstance(error.__cause__, JSONDecodeError):
            raise
        document = []  # one of several lines
    if isinstance(document, dict) and not is_log(document):
        return document, _lines(file)
    with reading(file):
        document = parsed(str(file), file.read_bytes())
    entries = document if isinstance(document, list) else [document]
    located = ((f"{file}, row {number}", entry) for number, entry in enumerate(entries, 1))
    return next(iter(entries), None), located


def _lines(file: Path) -> Records:
    with reading(file), file.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), 1):
            where = f"{file}, line {number}"
            if len(line) > LONGEST_LINE:
                raise UserError(f"{where} has more than {LONGEST_LINE:,} bytes; shorten it")
            if line.strip():
                yield where, parsed(where, line)


def _of_records(records: Records) -> Iterator[Output]:
    for where, record in records:
        if (read := record_reader(record)) is None:
            raise UserError(
                f"{where} is of no known format; expected an object with {', '.join(KINDS)}"
            )
        yield from read(where, record)


def _name(cell: object) -> object:
    return str(cell) if type(cell) is int else cell


def _whole(cell: object) -> int:
    if not re.fullmatch(r"[0-9]{1,9}(\.0)?", str(cell)):
        raise ValueError("expected a whole number from 0")
    return int(float(str(cell)))


def _ended(cell: object) -> Ending | None:
    """How the text ended; a word that could mean both is refused."""
    end = ending(str(cell))
    if end == "stop" and not NOT_CUT.fullmatch(str(cell)):
        raise ValueError("expected length if the text was cut off, stop if it ended, or nothing")
    return end


class _Row(Stored):
    """A row of a table, without its empty cells, in the fields of `Output`."""

    prompt_id: Annotated[str | None, BeforeValidator(_name)] = Field(
        default=None, validation_alias=AliasChoices("prompt_id", "prompt")
    )
    prompt: str | None = Field(default=None, validation_alias="text")
    draw: Annotated[int, BeforeValidator(_whole)] = 0
    thought: str | None = None
    text: str = Field(default="", validation_alias="answer")
    model: str | None = None
    finished: Annotated[Ending | None, BeforeValidator(_ended)] = Field(
        default=None, validation_alias=AliasChoices("finished", "finish_reason")
    )
    error: JsonValue = ""


def _of_table(file: Path) -> Iterator[Output]:
    more = ("prompt_id", "finish_reason", "error")
    rows = read_rows(file, (), optional=(*COLUMNS, *more), nested=True)
    for needed in (("prompt", "prompt_id", "text"), ("answer", "thought")):
        if not rows[0].cells.keys() & set(needed):
            raise UserError(
                f"{file} has no column {' or '.join(needed)}; expected a table with some of "
                f"{', '.join(COLUMNS)}, or texts as vLLM, OpenAI-like servers, Anthropic, Gemini, "
                "Inspect or lm-eval store them"
            )
    for place, cells in rows:
        held = {name: cell for name, cell in cells.items() if text_of(cell) or cell == ""}
        filled = {name: cell for name, cell in held.items() if cell != "" or name == "thought"}
        row = checked(place, _Row, filled)
        failed = "" if row.text or row.thought or not row.error else reason_of(row.error)
        error = failed and f"the request failed: {failed}"
        yield Output(place, **{**row.model_dump(), "error": error})
