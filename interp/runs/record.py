"""Records: the JSON beside results that says what they are and how they came about."""

import json
import os
import platform
import resource
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from interp.errors import UserError
from interp.files import write_whole

_PACKAGES = ("interp", "torch", "transformers", "tokenizers", "numpy", "pyarrow", "inseq")


def read_record(file: Path, keys: Sequence[str]) -> dict[str, Any] | None:
    """A record, which must hold some keys; None where there is no such file.

    Raises:
        UserError: the file is something else.
    """
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        record = None
    if not isinstance(record, dict) or not all(key in record for key in keys):
        raise UserError(
            f"{file} is not the record of a run (it needs {', '.join(keys)}); "
            "give an empty or new folder as --out"
        )
    return record


def write_record(file: Path, record: Mapping[str, Any]) -> None:
    """Write a record, whole or not at all."""
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    write_whole(file, lambda path: path.write_text(text, encoding="utf-8"))


def beginning(command: str | None = None) -> dict[str, Any]:
    """What a record says of its beginning: command, time and versions."""
    return {
        "command": shlex.join(sys.argv) if command is None else command,
        "started": now(),
        "finished": None,
        "versions": _versions(),
    }


def ending(peak_memory: Mapping[str, int]) -> dict[str, Any]:
    """What a record says of its end: the time, and the most memory held in bytes, by device."""
    return {"finished": now(), "peak_memory_bytes": dict(peak_memory)}


def peak_memory() -> dict[str, int]:
    """The most memory that this process has held so far, in bytes, by device."""
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    peak = {"cpu": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    for index in range(torch.cuda.device_count()):
        peak[f"cuda:{index}"] = torch.cuda.max_memory_allocated(index)
    return peak


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def cluster_job() -> str | None:
    """The job of a SLURM cluster that this process runs in, as SLURM's commands name it."""
    array, task = (os.environ.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")


def now() -> str:
    """The time, for records."""
    return datetime.now(UTC).isoformat(timespec="seconds")
