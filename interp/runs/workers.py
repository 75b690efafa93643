"""Worker records: who worked on a run, from when to when, how it ended, and the memory it took."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interp.errors import UserError
from interp.files import inside, make_folder, names_in
from interp.runs.records import (
    WorkerRecord,
    cluster_job,
    now,
    peak_memory,
    read_record,
    write_record,
)

INTERRUPTED = "it was interrupted"
"""The error of a worker that ended before its work did, without one of its own."""

_NAME = re.compile(r"[0-9a-f]{12}-[0-9]{1,9}\.json")


@contextmanager
def recorded_worker(folder: Path, call: str, number: int) -> Iterator[None]:
    """Within the block this process is on record as a worker of a call."""
    file = make_folder(folder, "workers") / f"{call}-{number}.json"
    torch = sys.modules.get("torch")
    record = WorkerRecord(
        call=call,
        number=number,
        host=platform.node(),
        process=os.getpid(),
        job=cluster_job(),
        threads=torch.get_num_threads() if torch else 0,
        started=now(),
    )
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
        write_record(file, record.model_copy(update=ended))


def worker_log(folder: Path, call: str, number: int) -> Path:
    """The file that takes the output of a worker on this machine."""
    return inside(folder, "logs", f"worker-{call}-{number}.log")


def worker_records(folder: Path, call: str | None = None) -> list[WorkerRecord]:
    """What the workers of a run or a study have left, in the order that they began.

    Args:
        folder: of the run or study.
        call: those of this call alone; all if None.

    Raises:
        UserError: a damaged record.
    """
    home = inside(folder, "workers")
    found = [
        record
        for name in names_in(home)
        if _NAME.fullmatch(name) and (record := read_record(inside(home, name), WorkerRecord))
    ]
    found.sort(key=lambda record: (record.started, record.call, record.number))
    return [record for record in found if call in (None, record.call)]


def peak_of_workers(folder: Path, call: str) -> dict[str, int]:
    """The most memory that any worker of a call, or this process, has held, in bytes, by device."""
    peaks = peak_memory()
    for record in worker_records(folder, call):
        for device, held in record.peak_memory_bytes.items():
            peaks[device] = max(peaks.get(device, 0), held)
    return peaks
