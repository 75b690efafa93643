"""Check what a run has left: every shard's checksums and columns, and the merged tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from interp.files import checksum
from interp.runs.folder import RunFolder
from interp.runs.shards import column_types, damage, read_manifest


def problems(run: RunFolder) -> Iterator[str]:
    """A line on each shard that is missing or wrong, and on each merged table that has changed."""
    for model, record in run.models().items():
        for shard in run.shards(model):
            problem = _problem_of_shard(shard, record["tables"])
            if problem is not None:
                yield f"shard {shard.name} of {model}: {problem}"
    for name, expected in run.record.get("files", {}).items():
        file = run.folder / name
        if not file.exists():
            yield f"{name} is missing"
        elif checksum(file) != expected:
            yield f"{name} has changed since it was written"


def _problem_of_shard(shard: Path, tables: dict[str, dict[str, str]]) -> str | None:
    if not shard.is_dir():
        return "it is not done"
    problem = damage(shard)
    if problem is not None:
        return problem
    manifest: dict[str, Any] = read_manifest(shard) or {}
    if set(manifest["files"]) != {f"{table}.parquet" for table in tables}:
        return f"it holds {', '.join(manifest['files'])}; expected the tables {', '.join(tables)}"
    for table, columns in tables.items():
        try:
            schema = pq.read_schema(shard / f"{table}.parquet")
        except pa.ArrowInvalid as error:
            return f"{table}.parquet cannot be read: {error}"
        found = column_types(schema)
        if found != columns:
            return f"{table}.parquet has the columns {found}; expected {columns}"
    return None
