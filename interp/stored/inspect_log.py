"""Logs of Inspect: one JSON object, or a zip file (.eval) with an object for each sample.

Source: https://inspect.aisi.org.uk/eval-logs.html, version 2. Epochs are draws.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Annotated, Any
from zipfile import ZipFile, ZipInfo, is_zipfile

from pydantic import ConfigDict, Field, JsonValue

from interp.errors import UserError, one_line
from interp.stored.output import Output
from interp.stored.schema import Choice, Message, Stored, asked, checked, parsed, reason_of

MOST_OF_ONE = 2**26
"""Largest number of bytes of an unpacked sample, since a small file can unpack to any size."""

MOST_OBJECTS = 2**21
"""Largest number of values of an unpacked sample, which take more memory than their bytes."""

MOST_UNPACKED = 2**32
"""Largest number of bytes of all unpacked samples."""

_ZSTANDARD = 93
"""The number of this compression in zip files, which Python reads from version 3.14 on."""

Records = Iterator[tuple[str, object]]
"""Records with their places, which are not checked yet."""


class _Said(Stored):
    model: str | None = None
    choices: tuple[Choice, ...] = Field(default=(), strict=False)
    completion: str | None = None


class _Score(Stored):
    value: Any = None
    answer: str | None = None


class Sample(Stored):
    """A sample of a log, or its summary."""

    id: str | int
    epoch: Annotated[int, Field(ge=1, lt=2**31)] = 1
    input: str | list[Message]
    output: _Said = _Said()
    error: JsonValue = None
    target: Any = None
    metadata: Any = None
    scores: dict[str, _Score] | None = None

    @property
    def asked(self) -> str | None:
        """What was asked, or the last message of the user."""
        return self.input if isinstance(self.input, str) else asked(self.input)


class _Task(Stored):
    model_config = ConfigDict(extra="allow")

    model: str | None = None


class _Results(Stored):
    total_samples: int = 0
    completed_samples: int = 0


class Log(Stored):
    """What a log says about all of its samples."""

    status: str = "started"
    eval: _Task
    results: _Results | None = None
    samples: list[JsonValue] | None = None


def is_log(document: object) -> bool:
    """Whether a JSON document is a log of Inspect."""
    return isinstance(document, Mapping) and document.keys() >= {"eval", "version"}


def is_archive(file: Path) -> bool:
    """Whether a file is a zip file, and no workbook."""
    return is_zipfile(file) and file.suffix.lower() not in (".xlsx", ".xlsm")


def outputs_of_log(file: Path, document: object = None) -> Iterator[Output]:
    """The texts of a log (`log_of`)."""
    log, samples = log_of(file, document)
    for where, record in samples:
        sample = checked(where, Sample, record)
        output = sample.output
        first = output.choices[0] if output.choices else Choice(message=output.completion or "")
        yield replace(
            first.output(where, model=output.model or log.eval.model, draw=sample.epoch - 1),
            prompt_id=str(sample.id),
            prompt=sample.asked,
            error="" if sample.error is None else f"the sample failed: {reason_of(sample.error)}",
        )


def log_of(file: Path, document: object = None, *, short: bool = False) -> tuple[Log, Records]:
    """What a log says about all of its samples, and these.

    `document` is its content; None for an archive (.eval), which is read sample by sample. If
    `short`, its summaries of samples, which have their scores, are read instead: they are members
    of their own, of which a log that stopped early has several or, if killed, too few.
    """
    if document is None:
        with _opened(file) as archive:
            members = {*archive.namelist()}
            start = next((n for n in ("header.json", "_journal/start.json") if n in members), None)
            if start is None:
                raise UserError(
                    f"{file} is a zip file without header.json; expected a log of Inspect"
                )
            ((_, header),) = _unpacked(str(file), archive, [archive.getinfo(start)])
            log = checked(str(file), Log, header)
        return log, _samples(file, short)
    log = checked(str(file), Log, document)
    if log.samples is None:
        raise UserError(f"{file} holds no samples; expected a log that was written with them")
    return log, ((f"{file}, sample {n}", sample) for n, sample in enumerate(log.samples, 1))


def _samples(file: Path, short: bool) -> Records:
    with _opened(file) as archive:
        members = {member.filename: member for member in archive.infolist()}
        samples = [n for n in members if n.startswith("samples/") and n.endswith(".json")]
        parts = [name for name in members if name.startswith("_journal/summaries/")]
        parts = ["summaries.json"] if "summaries.json" in members else parts
        if short and all(members[name].file_size <= MOST_OF_ONE for name in parts):
            summaries = [
                (where, summary)
                for where, read in _unpacked(str(file), archive, [members[name] for name in parts])
                for summary in (read if isinstance(read, list) else [read])
            ]
            if len(summaries) >= len(samples):
                yield from summaries
                return
        yield from _unpacked(str(file), archive, [members[name] for name in samples])


@contextmanager
def _opened(file: Path) -> Iterator[ZipFile]:
    try:
        with ZipFile(file) as archive:
            yield archive
    except UserError:
        raise
    except Exception as error:  # zipfile can raise any error for a damaged file
        raise UserError(f"{file} is damaged: {one_line(str(error), 160)}") from error


def _unpacked(file: str, archive: ZipFile, members: Sequence[ZipInfo]) -> Records:
    size = sum(member.file_size for member in members)
    if size > MOST_UNPACKED:
        raise UserError(f"{file} unpacks to {size:,} bytes; expected at most {MOST_UNPACKED:,}")
    for member in members:
        where = f"{file}, {one_line(member.filename, 80)}"
        yield where, _member(where, archive, member)


def _member(where: str, archive: ZipFile, member: ZipInfo) -> object:
    if member.compress_type == _ZSTANDARD:
        with suppress(ImportError):
            import_module("zipfile_zstd")  # which Inspect requires; it teaches zipfile
    try:
        with archive.open(member) as stream:
            content = stream.read(MOST_OF_ONE + 1)
    except RuntimeError as error:  # a password, or (NotImplementedError) an unknown compression
        raise UserError(
            f"{where} cannot be unpacked ({one_line(str(error), 120)}); install inspect_ai, or "
            "convert the log: inspect log convert --to json"
        ) from error
    if len(content) > MOST_OF_ONE:
        raise UserError(f"{where} unpacks to more than {MOST_OF_ONE:,} bytes")
    marks = (piece for piece in _VALUE.finditer(content) if piece["mark"])
    many = sum(map(content.count, (b",", b"[", b"{"))) > MOST_OBJECTS  # with those in strings
    if many and any(islice(marks, MOST_OBJECTS, None)):
        raise UserError(f"{where} has more than {MOST_OBJECTS:,} values; store it without events")
    return parsed(where, content)


_VALUE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<mark>[,\[{])', re.DOTALL)
"""A string, or a mark outside of strings before a value."""
