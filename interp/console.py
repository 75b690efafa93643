"""Messages and progress on standard error: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from interp.errors import printable

PLAIN_INTERVAL = 10.0
"""Minimum number of seconds between plain lines."""


def echo(line: str) -> None:
    """Print a line to standard error; standard output is reserved for tables."""
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()


def counted(count: int, what: str) -> str:
    """A count with its noun, such as "1 model" or "2,400 pairs"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


class Progress:
    """Show a task's progress on standard error while the `with` block runs."""

    def __init__(self, task: str, *, total: int, done: int = 0, unit: str = "prompts") -> None:
        self._task, self._total, self._unit = task, total, unit
        self._done = self._initial = self._printed = done
        self._note = ""
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]} {task.fields[note]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._id = self._bar.add_task(task, total=total, completed=done, rate="", note="")

    def __enter__(self) -> "Progress":
        self._start = self._last_line = time.monotonic()
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
        elif self._done > self._printed and kind is None:
            self._print_line()

    def advance(self, count: int, *, note: str = "") -> None:
        """Count `count` more items as done; show the note until another one replaces it."""
        self._done += count
        self._note = note or self._note
        if self._bar:
            rate = f"{self._rate():.1f} {self._unit}/s"
            self._bar.update(self._id, completed=self._done, rate=rate, note=self._note)
        elif time.monotonic() - self._last_line >= PLAIN_INTERVAL:
            self._print_line()

    def _rate(self) -> float:
        elapsed = time.monotonic() - self._start
        return (self._done - self._initial) / elapsed if elapsed > 0 else 0.0

    def _print_line(self) -> None:
        self._last_line, self._printed = time.monotonic(), self._done
        rate = self._rate()
        left = (self._total - self._done) / rate if rate else float("inf")
        note = f", {self._note}" if self._note else ""
        done = f"{self._done}/{self._total} {self._unit}"
        echo(f"{self._task}: {done}, {rate:.1f}/s, {clock(left)} left{note}")


def clock(seconds: float) -> str:
    """A duration in minutes and seconds, or in hours, minutes and seconds from one hour on."""
    if seconds == float("inf"):
        return "unknown time"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
