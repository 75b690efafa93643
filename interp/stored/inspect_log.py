"""Logs of Inspect: one JSON object, or a zip file (.eval) with an object for each sample.

Source: https://inspect.aisi.org.uk/eval-logs.html, version 2. Epochs are draws.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Annotated
from zipfile import ZipFile, ZipInfo

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


class _Said(Stored):
    model: str | None = None
    choices: tuple[Choice, ...] = Field(default=(), strict=False)
    completion: str | None = None


class Sample(Stored):
    """A sample of a log."""

    id: str | int
    epoch: Annotated[int, Field(ge=1, lt=2**31)] = 1
    input: str | list[Message]
    output: _Said = _Said()
    error: JsonValue = None

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


def outputs_of_log(name: str, document: object) -> Iterator[Output]:
    """The texts of a log in JSON.

    Raises:
        UserError: the log is damaged, or was read or written without its samples.
    """
    log, samples = samples_of_log(name, document)
    for where, sample in samples:
        yield _output(where, sample, log.eval.model)


def samples_of_log(name: str, document: object) -> tuple[Log, list[tuple[str, object]]]:
    """What a log in JSON says, and its samples with their places.

    Raises:
        UserError: as in `outputs_of_log`.
    """
    log = checked(name, Log, document)
    if log.samples is None:
        raise UserError(f"{name} holds no samples; expected a log that was written with them")
    return log, [(f"{name}, sample {number}", own) for number, own in enumerate(log.samples, 1)]


def outputs_of_archive(file: Path) -> Iterator[Output]:
    """The texts of a log in the format .eval.

    Raises:
        UserError: the file is no such log, is damaged, unpacks to more than the largest size, or
            is compressed in a way that this Python cannot read.
    """
    with _opened(file) as (archive, members, log):
        size = sum(member.file_size for member in members.values())
        if size > MOST_UNPACKED:
            raise UserError(
                f"{file.name} unpacks to {size:,} bytes; expected at most {MOST_UNPACKED:,}"
            )
        for name in _samples(members):
            sample = _member(file.name, archive, members[name])
            yield _output(f"{file.name}, {one_line(name, 80)}", sample, log.eval.model)


def summaries_of_archive(file: Path) -> tuple[Log, list[tuple[str, object]]]:
    """What a log in the format .eval says, and a summary of each sample with its scores.

    Summaries are members of their own, so that the samples of a large log need not be unpacked; a
    log that stopped early has several, and one without any is read sample by sample.

    Raises:
        UserError: as in `outputs_of_archive`.
    """
    with _opened(file) as (archive, members, log):
        whole = [name for name in ("summaries.json",) if name in members]
        parts = whole or [name for name in members if name.startswith("_journal/summaries/")]
        if any(members[name].file_size > MOST_OF_ONE for name in parts):
            parts = []
        found: list[tuple[str, object]] = []
        for name in parts or _samples(members):
            record = _member(file.name, archive, members[name])
            place = f"{file.name}, {one_line(name, 80)}"
            found += [(place, own) for own in (record if isinstance(record, list) else [record])]
    return log, found


def _samples(members: Mapping[str, ZipInfo]) -> list[str]:
    return [name for name in members if name.startswith("samples/") and name.endswith(".json")]


@contextmanager
def _opened(file: Path) -> Iterator[tuple[ZipFile, Mapping[str, ZipInfo], Log]]:
    """An archive with its members and what it says about all samples."""
    try:
        with ZipFile(file) as archive:
            members = {member.filename: member for member in archive.infolist()}
            start = next((n for n in ("header.json", "_journal/start.json") if n in members), None)
            if start is None:
                raise UserError(
                    f"{file.name} is a zip file without header.json; expected a log of Inspect"
                )
            yield (
                archive,
                members,
                checked(file.name, Log, _member(file.name, archive, members[start])),
            )
    except UserError:
        raise
    except Exception as error:  # zipfile can raise any error for a damaged file
        raise UserError(f"{file.name} is damaged: {one_line(str(error), 160)}") from error


def _member(file: str, archive: ZipFile, member: ZipInfo) -> object:
    where = f"{file}, {one_line(member.filename, 80)}"
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
    marks = (found for found in _VALUE.finditer(content) if found["mark"])
    many = sum(map(content.count, (b",", b"[", b"{"))) > MOST_OBJECTS  # with those in strings
    if many and any(islice(marks, MOST_OBJECTS, None)):
        raise UserError(f"{where} has more than {MOST_OBJECTS:,} values; store it without events")
    return parsed(where, content)


_VALUE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<mark>[,\[{])', re.DOTALL)
"""A string, or a mark outside of strings before a value."""


def _output(where: str, record: object, model: str | None) -> Output:
    sample = checked(where, Sample, record)
    said = sample.output
    first = said.choices[0] if said.choices else Choice(message=said.completion or "")
    return replace(
        first.output(where, model=said.model or model, draw=sample.epoch - 1),
        prompt_id=str(sample.id),
        prompt=sample.asked,
        error="" if sample.error is None else f"the sample failed: {reason_of(sample.error)}",
    )
