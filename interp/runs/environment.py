"""What records say of the process that writes them: time, versions, memory, cluster job."""

import os
import platform
import resource
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("interp", "torch", "transformers", "tokenizers", "numpy", "pyarrow", "inseq", "peft")


def now() -> str:
    """The time, for records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers may depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def cluster_job() -> str | None:
    """The job of a SLURM cluster that this process runs in, as SLURM's commands name it."""
    array, task = (os.environ.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")


def peak_memory() -> dict[str, int]:
    """The most memory that this process has held so far, in bytes, by device."""
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    peak = {"cpu": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    torch = sys.modules.get("torch")
    if torch is not None:  # a process that has not imported it holds no memory of a GPU
        for index in range(torch.cuda.device_count()):
            peak[f"cuda:{index}"] = torch.cuda.max_memory_allocated(index)
    return peak
