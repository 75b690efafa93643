"""Worker records: who worked on a run, from when to when, how it ended, and the memory it took."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from interp.errors import UserError
from interp.runs.record import cluster_job, now, peak_memory, write_record

INTERRUPTED = "it was interrupted"
"""The error of a worker that ended before its work did, without one of its own."""


@contextmanager
def recorded_worker(folder: Path, number: int) -> Iterator[None]:
    """Within the block this process is on record as a worker of a run or a study."""
    file = worker_file(folder, number)
    file.parent.mkdir(exist_ok=True)
    record: dict[str, Any] = {
        "number": number,
        "host": platform.node(),
        "process": os.getpid(),
        "job": cluster_job(),
        "threads": torch.get_num_threads(),
        "started": now(),
        "finished": None,
    }
    write_record(file, record)
    error: str | None = INTERRUPTED
    try:
        yield
        error = None
    except UserError as problem:
        error = str(problem)
        raise
    finally:
        ended = {"finished": now(), "error": error, "peak_memory_bytes": peak_memory()}
        write_record(file, {**record, **ended})


def worker_file(folder: Path, number: int) -> Path:
    """Where the record of a worker is."""
    return folder / "workers" / f"{number}.json"


def worker_log(folder: Path, number: int) -> Path:
    """Where a worker that was started writes what it has to say."""
    return folder / "logs" / f"worker-{number}.log"


def worker_records(folder: Path) -> list[dict[str, Any]]:
    """What the workers of a run or a study have left, by number."""
    found = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in (folder / "workers").glob("[0-9]*.json")
    ]
    return sorted(found, key=lambda record: record["number"])


def peak_of_workers(folder: Path) -> dict[str, int]:
    """The most memory that any worker, or this process, has held, in bytes, by device."""
    peaks = peak_memory()
    for record in worker_records(folder):
        for device, held in record.get("peak_memory_bytes", {}).items():
            peaks[device] = max(peaks.get(device, 0), held)
    return peaks
