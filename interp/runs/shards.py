"""Shards: pieces of a run with ids made from their content, written whole or not at all."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from interp.files import write_whole
from interp.measure import Measurement, PromptRows
from interp.prompts.prompt_set import PromptSet, prompt_record

SHARD_PROMPTS = 1024
"""Prompts in a shard; what is lost at most when a run is killed."""


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


def write(shard: Shard, measurement: Measurement, rows: PromptRows) -> None:
    """Write a shard's tables into a folder beside its own, then rename that into place."""
    unfinished = shard.folder.with_name(f".{shard.id}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for table, schema in measurement.tables.items():
        rows_of_table = pa.Table.from_pylist(rows[table], schema=schema)
        pq.write_table(rows_of_table, unfinished / f"{table}.parquet")
    unfinished.rename(shard.folder)


def remove_unfinished(folder: Path) -> None:
    """Clear away what an interrupted call left half written."""
    for leftover in folder.glob(".*"):
        shutil.rmtree(leftover)


def merge(table: str, folders: list[Path], file: Path) -> None:
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
