"""Executors: where the workers of a run are started; the folder on disk is all they share.

Each module offers `start(folder, *, workers, ...)`, which returns the workers that it started. What
is started is always the command `python -m interp work FOLDER NUMBER`.
"""

import sys
from pathlib import Path
from typing import Protocol, runtime_checkable

LOG_LINES = 20
"""Lines of the log of a worker that failed which are shown."""


@runtime_checkable
class Worker(Protocol):
    """A worker that was started, as seen by the process that started it."""

    @property
    def number(self) -> int:
        """Counted from 0; its log and its record are named after it."""

    def running(self) -> bool:
        """Whether it runs, or waits for its turn to run."""

    def problem(self) -> str | None:
        """How it failed, once it has ended; None if it ended well."""

    def stop(self) -> None:
        """Make it end soon; what it has finished stays."""


def work_command(folder: Path, number: int) -> list[str]:
    """The command line of a worker."""
    return [sys.executable, "-m", "interp", "work", str(folder), str(number)]


def end_of(log: Path) -> str:
    """The last lines of a worker's log."""
    if not log.exists():
        return "(there is no such file: the worker never started)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
