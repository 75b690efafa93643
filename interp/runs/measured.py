"""Shards as they are measured: pieces of a run with ids made from their content."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from interp.files import (
    checksum,
    is_folder,
    remove_own,
    sync,
    unfinished_name,
    writing,
)
from interp.measurements.core import Measured, Measurement
from interp.prompts.prompt_set import PromptSet, prompt_record
from interp.runs.code import code_version
from interp.runs.schemas import Manifest, write_record
from interp.tables import Row

MANIFEST = "manifest.json"

Filters = list[tuple[str, str, Any]]
"""Column, operator and value of the rows to read, as pyarrow takes them."""

_RERUN = "rerun the command that wrote it to measure it again"


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
        return is_folder(self.folder)


def cut(measurement: Measurement, prompts: PromptSet, folder: Path) -> list[Shard]:
    """The shards of a model's run, in the order of the prompts.

    A shard has as many prompts as the spec says, and those more that belong to its last group.
    """
    model, spec = measurement.model, measurement.spec
    origin = [
        code_version(tuple(spec.modules())),
        model.identity,
        model.dtype,
        model.quantization,
        model.attn_implementation,
        asdict(model.chat_frame),
        spec.name,
        spec.identity(),
        sorted(measurement.tables),
    ]
    shards = []
    start = 0
    while start < len(prompts):
        end = _end_of_group(prompts, start + spec.shard_prompts)
        digest = hashlib.sha256(json.dumps(origin).encode())
        for prompt in prompts[start:end]:
            digest.update(prompt_record(prompt).encode())
        id_ = digest.hexdigest()[:32]
        shards.append(Shard(id_, start, end, folder / id_))
        start = end
    return shards


def _end_of_group(prompts: PromptSet, end: int) -> int:
    """The first index from `end` on at which a group of prompts ends."""
    while end < len(prompts) and prompts[end].pair_id == prompts[end - 1].pair_id:
        end += 1
    return min(end, len(prompts))


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
    with writing(shard.folder):
        unfinished.mkdir()
        try:
            files = {
                f"{table}.parquet": _write_table(
                    unfinished / f"{table}.parquet", measured.rows[table], schema
                )
                for table, schema in measurement.tables.items()
            }
            manifest = Manifest(
                id=shard.id,
                prompts=shard.end - shard.start,
                units=measured.units,
                errors=len(measured.errors),
                example=next(iter(measured.errors.values()), None),
                seconds=round(seconds, 3),
                files=files,
            )
            write_record(unfinished / MANIFEST, manifest)
            _place(unfinished, shard)
        finally:
            if is_folder(unfinished):
                remove_own(unfinished)


def _write_table(file: Path, rows: Sequence[Row], schema: pa.Schema) -> str:
    """Write rows; returns the checksum of the file."""
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
    sync(file)
    return checksum(file)


def _place(unfinished: Path, shard: Shard) -> None:
    sync(unfinished)
    try:
        unfinished.rename(shard.folder)
    except OSError:
        # Another worker took this one for dead and finished first; its results are identical.
        if not shard.done:
            raise
    sync(shard.folder.parent)
