"""Shards: pieces of a run with ids made from their content, written whole or not at all.

A shard is a folder with a Parquet file a table and a manifest, which holds the checksums. It is
filled beside its place, brought to the disk, and renamed into it.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from interp.files import checksum, sync, unfinished_name, write_whole, writing
from interp.measurement import Measured, Measurement
from interp.prompts.prompt_set import PromptSet, prompt_record

SHARD_PROMPTS = 240
"""Prompts in a shard; what is lost at most when a worker is killed, and what workers share out.
Data sets hold what belongs together in tens or twenties, which this number does not cut."""

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """A stretch of the prompts of a run, measured on one model."""

    id: str
    """Hash of everything that the shard's numbers depend on."""
    start: int
    end: int
    """Half-open range of prompts in the prompt set."""
    folder: Path
    """Where its tables are, once it is done."""

    @property
    def done(self) -> bool:
        """Whether the tables are there; a shard appears whole or not at all."""
        return self.folder.is_dir()


def cut(measurement: Measurement, prompts: PromptSet, folder: Path) -> list[Shard]:
    """The shards of a model's run, in the order of the prompts."""
    model = measurement.model
    home = measurement.measure_batch.__module__.partition(".")[0]
    origin = [
        *(code_version(package) for package in sorted({"interp", home})),
        model.identity,
        model.dtype,
        model.quantization,
        model.attn_implementation,
        asdict(model.chat_frame),
        measurement.name,
        dict(measurement.parameters),
        sorted(measurement.tables),
    ]
    shards = []
    for start in range(0, len(prompts), SHARD_PROMPTS):
        end = min(start + SHARD_PROMPTS, len(prompts))
        digest = hashlib.sha256(json.dumps(origin).encode())
        for prompt in prompts[start:end]:
            digest.update(prompt_record(prompt).encode())
        id_ = digest.hexdigest()[:32]
        shards.append(Shard(id_, start, end, folder / id_))
    return shards


def write(shard: Shard, measurement: Measurement, measured: Measured, *, seconds: float) -> None:
    """Write a shard's tables and its manifest.

    Args:
        shard: what was measured.
        measurement: how.
        measured: rows of each table, and the prompts that failed.
        seconds: how long it took, for estimates of the time left.

    Raises:
        UserError: it cannot be written, as on a full disk; nothing is left behind.
    """
    unfinished = unfinished_name(shard.folder)
    try:
        with writing(shard.folder):
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            manifest: dict[str, Any] = {
                "prompts": shard.end - shard.start,
                "units": measured.units,
                "errors": len(measured.errors),
                "example": next(iter(measured.errors.values()), None),
                "seconds": round(seconds, 3),
                "files": {},
            }
            for table, schema in measurement.tables.items():
                file = unfinished / f"{table}.parquet"
                pq.write_table(pa.Table.from_pylist(measured.rows[table], schema=schema), file)
                sync(file)
                manifest["files"][file.name] = checksum(file)
            (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
            sync(unfinished / MANIFEST)
            _place(unfinished, shard)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _place(unfinished: Path, shard: Shard) -> None:
    sync(unfinished)
    try:
        unfinished.rename(shard.folder)
    except OSError:
        # Another worker that thought this one dead was as quick, with the same numbers.
        if not shard.done:
            raise
    sync(shard.folder.parent)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a shard; None where it is missing or broken."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and "files" in manifest else None


def damage(folder: Path) -> str | None:
    """What is wrong with a shard that is there: a line, or None if it is as it was written."""
    manifest = read_manifest(folder)
    if manifest is None:
        return f"its {MANIFEST} is missing or broken"
    for name, expected in manifest["files"].items():
        file = folder / name
        if not file.exists():
            return f"{name} is missing"
        if checksum(file) != expected:
            return f"{name} has changed since it was written"
    return None


def column_types(schema: pa.Schema) -> dict[str, str]:
    """The names of a table's columns and of their types, as records hold them."""
    return {column.name: _type_name(column.type) for column in schema}


def _type_name(type_: pa.DataType) -> str:
    # What a list's elements are called changes when a file is written and read again.
    if pa.types.is_list(type_):
        return f"list<{_type_name(type_.value_type)}>"
    return str(type_)


def merge(table: str, folders: Sequence[Path], file: Path) -> None:
    """Join a table of all shard folders into one file, one shard in memory at a time."""
    parts = [folder / f"{table}.parquet" for folder in folders]
    write_parquet(file, pq.read_schema(parts[0]), (pq.read_table(part) for part in parts))


def write_parquet(file: Path, schema: pa.Schema, parts: Iterator[pa.Table]) -> None:
    """Stream tables into one Parquet file, which appears only when it is complete."""

    def stream(path: Path) -> None:
        with pq.ParquetWriter(path, schema) as writer:
            for part in parts:
                writer.write_table(part)

    write_whole(file, stream)


@cache
def code_version(package: str = "interp") -> str:
    """A hash over a package's source: other code's results are never taken for this one's."""
    (location,) = import_module(package).__path__
    root = Path(location)
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
