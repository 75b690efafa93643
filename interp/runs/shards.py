"""Shards: pieces of a run, written atomically; their ids are hashes of their content.

A shard is a folder with one Parquet file per table and a manifest with their checksums. It is
written to a temporary folder next to its destination, synced to disk and renamed.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from interp import files
from interp.errors import UserError
from interp.measuring.spec import Attempt
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet, prompt_record
from interp.runs.identity import code_version
from interp.runs.records import ShardManifest, column_types, read_record, write_record
from interp.runs.written import change_in

if TYPE_CHECKING:
    from interp.measuring.core import Measurement

MANIFEST = "manifest.json"

Filters = list[tuple[str, str, Any]]
"""Column, operator and value that select the rows to read, in pyarrow's form."""

_RERUN = "rerun the command that wrote it, which measures this shard again"


@dataclass(frozen=True, slots=True)
class Shard:
    """A contiguous part of a run's prompts, measured on one model."""

    id: str
    """Hash of everything that the shard's numbers depend on."""
    start: int
    end: int
    """Half-open range of prompts in the prompt set."""
    folder: Path
    """Folder that contains the shard's tables once the shard is done."""

    @property
    def done(self) -> bool:
        """Whether the shard's tables exist; all of them appear at the same moment."""
        return files.is_folder(self.folder)


def cut(
    measurement: "Measurement", prompts: PromptSet, folder: Path, *, size: int | None = None
) -> list[Shard]:
    """The shards of a model's run (`cut_by`); by default of `Measurement.shard_prompts` prompts."""
    model, spec = measurement.model, measurement.spec
    origin = [
        code_version((*spec.modules(), *model.family_modules)),
        model.identity,
        model.dtype,
        model.quantization,
        model.attn_implementation,
        model.chat_frame.record(),
        model.chat.thinking,
        spec.name,
        spec.identity(),
        sorted(measurement.tables),
    ]

    def read(prompt: Prompt) -> list[object]:
        return [thought.record() for thought in model.thoughts.get(prompt.id, ())]

    return cut_by(origin, prompts, folder, size=size or measurement.shard_prompts, read=read)


def cut_by(
    origin: Sequence[object],
    prompts: PromptSet,
    folder: Path,
    *,
    size: int,
    read: Callable[[Prompt], Sequence[object]],
) -> list[Shard]:
    """The shards of prompts, in their order; each ends with a whole group after `size` prompts.

    The numbers of all prompts depend on `origin`, and those of one also on what `read` returns for
    it, both as JSON.
    """
    shards = []
    start = 0
    while start < len(prompts):
        end = min(start + size, len(prompts))
        while end < len(prompts) and prompts[end].pair_id == prompts[end - 1].pair_id:
            end += 1
        digest = hashlib.sha256(json.dumps(origin).encode())
        for prompt in prompts[start:end]:
            digest.update(prompt_record(prompt).encode())
            basis = read(prompt)
            digest.update(json.dumps(basis).encode() if basis else b"")
        id_ = digest.hexdigest()[:32]
        shards.append(Shard(id_, start, end, folder / id_))
        start = end
    return shards


def write(
    shard: Shard, tables: Mapping[str, pa.Schema], measured: Attempt, *, seconds: float
) -> None:
    """Write a shard's tables and its manifest, which includes how many seconds it took."""
    unfinished = files.unfinished_name(shard.folder)
    with files.writing(shard.folder):
        unfinished.mkdir()
        try:
            sums = {}
            for table, schema in tables.items():
                file = unfinished / f"{table}.parquet"
                pq.write_table(pa.Table.from_pylist(measured.rows[table], schema=schema), file)
                files.sync(file)
                sums[file.name] = files.checksum(file)
            manifest = ShardManifest(
                id=shard.id,
                prompts=shard.end - shard.start,
                units=measured.units,
                errors=len(measured.errors),
                example=next(iter(measured.errors.values()), None),
                seconds=round(seconds, 3),
                files=sums,
            )
            write_record(unfinished / MANIFEST, manifest)
            files.sync(unfinished)
            try:
                unfinished.rename(shard.folder)
            except OSError:
                # Another worker also measured the shard and finished first, with identical results.
                if not shard.done:
                    raise
            files.sync(shard.folder.parent)
        finally:
            if files.is_folder(unfinished):
                files.remove_own(unfinished)


def read_manifest(folder: Path) -> ShardManifest:
    """The manifest of an existing shard.

    Raises:
        UserError: the manifest is missing, damaged, or belongs to another shard.
    """
    manifest = read_record(files.inside(folder, MANIFEST), ShardManifest)
    if manifest is None:
        raise UserError(f"{folder} has no {MANIFEST}")
    if manifest.id != folder.name:
        raise UserError(f"{folder} holds the shard {manifest.id}")
    return manifest


def manifests(folders: Iterable[Path]) -> Iterator[ShardManifest]:
    """The manifests of shards, except damaged ones."""
    for folder in folders:
        with suppress(UserError):
            yield read_manifest(folder)


def damage(folder: Path) -> str | None:
    """A line about what is wrong with an existing shard; None if nothing is."""
    try:
        listed = read_manifest(folder).files.items()
    except UserError as error:
        return str(error)
    changes = (change_in(folder, name, expected) for name, expected in listed)
    return next(filter(None, changes), None)


def unchanged_file(folder: Path, table: str) -> Path:
    """The file of a shard's table, verified to be unchanged.

    Raises:
        UserError: the file is missing, has changed, or is not a regular file.
    """
    file = files.inside(folder, f"{table}.parquet")
    if problem := change_in(folder, file.name, read_manifest(folder).files.get(file.name, "")):
        raise UserError(f"{folder}: {problem}; {_RERUN}")
    return file


def read_table(
    folder: Path,
    table: str,
    expected: Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
) -> pa.Table:
    """A table of a shard, verified to be unchanged; all columns and rows by default.

    `expected` are the columns that it must have, with their types.

    Raises:
        UserError: the table is missing, has changed, or has different columns.
    """
    file = files.inside(folder, f"{table}.parquet")
    try:
        content = files.read_bytes(file)
        if hashlib.sha256(content).hexdigest() != read_manifest(folder).files.get(file.name):
            raise UserError(f"{file} has changed since it was written; {_RERUN}")
        actual = column_types(pq.read_schema(io.BytesIO(content)))
        if actual != expected:
            raise UserError(
                f"{file} has the columns {', '.join(actual)}; expected {', '.join(expected)}; "
                f"{_RERUN}"
            )
        return read_columns(content, columns, filters)
    except FileNotFoundError:
        raise UserError(f"{file} is missing; {_RERUN}") from None
    except pa.ArrowException as error:
        raise UserError(f"{file} cannot be read: {str(error)[:200]}; {_RERUN}") from error


def read_columns(
    content: bytes, columns: Sequence[str] | None, filters: Filters | None = None
) -> pa.Table:
    """Selected columns and rows of a Parquet file; all by default.

    Raises:
        UserError: the file has no such column.
    """
    names = pq.read_schema(io.BytesIO(content)).names
    absent = [column for column in columns or () if column not in names]
    if absent:
        raise UserError(f"the table has no column {absent[0]!r}; it has {', '.join(names)}")
    chosen = None if columns is None else list(columns)
    if any(operator == "in" and not value for _, operator, value in filters or ()):
        # pyarrow gives an empty list the type null, which matches no column.
        return pq.read_table(io.BytesIO(content), columns=chosen).slice(0, 0)
    return pq.read_table(io.BytesIO(content), columns=chosen, filters=filters)


def write_parquet(file: Path, schema: pa.Schema, parts: Iterator[pa.Table]) -> None:
    """Write tables one after another into one Parquet file, which appears once it is complete."""

    def stream(path: Path) -> None:
        with pq.ParquetWriter(path, schema) as writer:
            for part in parts:
                writer.write_table(part)

    files.write_whole(file, stream)
