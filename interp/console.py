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


_running: list["Progress"] = []
"""The progress displays of the running tasks, outermost first."""


def begin_step(count: int) -> None:
    """Note that the innermost running task now works on its next `count` items."""
    if _running:
        _running[-1].begin_step(count)


def passed(share: float | None = None) -> None:
    """Note that the innermost running task is alive, with the finished share of its step if known.

    Call it after each forward pass of a step that may take long.
    """
    if _running:
        _running[-1].passed(share)


class Progress:
    """Show a task's progress on standard error while the `with` block runs."""

    def __init__(self, task: str, *, total: int, done: int = 0, unit: str = "prompts") -> None:
        self._task, self._total, self._unit = task, total, unit
        self._done = self._initial = self._printed = done
        self._note = ""
        self._step, self._share = 0, 0.0
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
        _running.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _running.remove(self)
        if self._bar:
            self._bar.stop()
        elif self._done > self._printed and kind is None:
            self._print_line()

    def advance(self, count: int, *, note: str = "") -> None:
        """Count `count` more items as done; show the note until another one replaces it."""
        self._done += count
        self._step, self._share = 0, 0.0
        self._note = note or self._note
        self._show()

    def begin_step(self, count: int) -> None:
        """Work on the next `count` items, which are counted once `advance` is called."""
        self._step, self._share = count, 0.0

    def passed(self, share: float | None) -> None:
        """Show that the step is running, with its finished share if known."""
        self._share = self._share if share is None else share
        self._show()

    @property
    def _reached(self) -> float:
        """The number of items done, including the finished share of the step."""
        return self._done + self._share * self._step

    def _show(self) -> None:
        if self._bar:
            rate = f"{self._rate():.1f} {self._unit}/s"
            self._bar.update(self._id, completed=self._reached, rate=rate, note=self._note)
        elif time.monotonic() - self._last_line >= PLAIN_INTERVAL:
            self._print_line()

    def _rate(self) -> float:
        elapsed = time.monotonic() - self._start
        return (self._reached - self._initial) / elapsed if elapsed > 0 else 0.0

    def _print_line(self) -> None:
        self._last_line, self._printed = time.monotonic(), self._done
        rate = self._rate()
        left = (self._total - self._reached) / rate if rate else float("inf")
        note = f", {self._note}" if self._note else ""
        done = f"{self._done}/{self._total} {self._unit}"
        part = f" and {self._share:.0%} of the next {self._step}" if self._share else ""
        echo(f"{self._task}: {done}{part}, {rate:.2g}/s, {clock(left)} left{note}")


def clock(seconds: float) -> str:
    """A duration in minutes and seconds, or in hours, minutes and seconds from one hour on."""
    if seconds == float("inf"):
        return "unknown time"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
