"""Executors: where the workers of a run are started; the folder on disk is all they share.

Each module offers `start(command, *, workers, ...)`, which returns the workers that it started.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from interp.files import open_plain

LOG_LINES = 20
"""Lines of the log of a worker that failed which are shown."""

LOG_BYTES = 2**16
"""Bytes at the end of a log that these lines are sought in."""


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


@dataclass(frozen=True)
class WorkerCommand:
    """The command line of workers.

    A worker takes what it does from here, and from nothing in the folder: others may be
    able to write there.
    """

    folder: Path
    """Of the run or study."""
    call: str
    """Id of the call that starts the workers."""
    job: str
    """What they take part in, as JSON."""

    def of(self, number: int, *options: str) -> list[str]:
        """The words of the worker of a number."""
        own = [str(self.folder), str(number), "--call", self.call, *options]
        return [sys.executable, "-m", "interp", "work", *own, "--", self.job]


def end_of(log: Path) -> str:
    """The last lines of a worker's log."""
    try:
        with open_plain(log) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - LOG_BYTES))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return "(there is no such file: the worker never started)"
    return "\n".join(text.splitlines()[-LOG_LINES:])
