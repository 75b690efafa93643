"""Messages and progress on standard error: a bar on a terminal, plain lines elsewhere."""

import sys
import threading
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
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


def begin_step(count: int, *, cost: float) -> None:
    """Note that the innermost running task now works on its next `count` items.

    They are counted once `advance` is called. `cost` is the time that they take, in units of the
    mean time of an item.
    """
    for task in _running[-1:]:
        task._step, task._cost, task._share = count, cost, 0.0
        task._part = 0, 1


def begin_part(number: int, count: int) -> None:
    """Note that finished shares are now those of part `number` (from 0) of `count` equal parts."""
    for task in _running[-1:]:
        task._part = number, count


def passed(share: float | None = None) -> None:
    """Note that the innermost running task is alive, with the finished share of its part if known.

    Call it after each forward pass of a step that may take long.
    """
    for task in _running[-1:]:
        if share is not None:
            number, count = task._part
            task._share = (number + share) / count
        task._show()


class Progress:
    """Show a task's progress on standard error while the `with` block runs.

    Times left follow from the pace of finished steps, without the first one, which also takes the
    time of preparations. Equal shares of a step need not take equal times, so these are used only
    until a step is finished, and for a step that takes longer than expected.
    """

    def __init__(self, task: str, *, total: int, done: int = 0, unit: str = "prompts") -> None:
        self._task, self._total, self._unit = task, total, unit
        self._done = self._initial = self._printed = done
        self._note = ""
        self._step, self._cost, self._share = 0, 0.0, 0.0
        self._part = 0, 1
        self._finished = float(done)
        self._ended = threading.Event()
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]} {task.fields[note]}"),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
            )
            self._id = self._bar.add_task(
                task, total=total, completed=done, rate="", note="", left=""
            )

    def __enter__(self) -> "Progress":
        self._start = self._last_line = time.monotonic()
        self._first: tuple[float, float] | None = None
        self._last = self._latest = self._start, self._finished
        if self._bar:
            self._bar.start()
        else:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        _running.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _running.remove(self)
        self._ended.set()
        if self._bar:
            self._bar.stop()
            return
        self._watcher.join()
        if self._done > self._printed and kind is None:
            self._print_line()

    def advance(self, count: int, *, note: str = "") -> None:
        """Count `count` more items as done; show the note until another one replaces it."""
        self._done += count
        self._finished += self._cost if count == self._step else count
        self._step, self._cost, self._share = 0, 0.0, 0.0
        self._note = note or self._note
        if self._finished > self._last[1]:
            self._last = self._latest = time.monotonic(), self._finished
            self._first = self._first or self._last
        self._show()

    def _watch(self) -> None:
        """Print lines while nothing else does, because a single pass takes long."""
        while not self._ended.wait(PLAIN_INTERVAL / 10):
            if time.monotonic() - self._last_line >= PLAIN_INTERVAL:
                self._print_line()

    def _show(self) -> None:
        now, reached = time.monotonic(), self._finished + self._share * self._cost
        if reached > self._latest[1]:
            self._latest = now, reached
        if self._bar:
            rate = f"{self._rate(now):.1f} {self._unit}/s"
            left = f"{clock(self._left(now))} left" if self._latest[1] > self._initial else ""
            done = self._done + self._share * self._step
            self._bar.update(self._id, completed=done, rate=rate, note=self._note, left=left)
        elif now - self._last_line >= PLAIN_INTERVAL:
            self._print_line()

    def _rate(self, now: float) -> float:
        """The number of items per second."""
        done = self._done - self._initial + self._share * self._step
        return done / (now - self._start) if now > self._start else 0.0

    def _left(self, now: float) -> float:
        """The estimated number of seconds until the task ends; asked once a part is finished."""
        if self._done == self._total:
            return 0.0
        pace, ended, finished = self._pace()
        expected = (self._cost or self._total - finished) * pace
        later = max(0.0, (self._total - finished) * pace - expected)
        when, _ = self._latest
        left = ended + expected - now
        if left < 1 and self._share:  # the step takes longer than those before
            left = (when - ended) * (1 - self._share) / self._share - (now - when)
        if left < 1:  # the current pass takes longer than those before
            left = max(1.0, now - when)
        return later + left

    def _pace(self) -> tuple[float, float, float]:
        """Seconds per item, and when the last step was finished, with the items until then."""
        ended, finished = self._last
        if self._first is None:
            when, reached = self._latest
            return (when - ended) / (reached - finished), ended, finished
        since, before = self._first if self._last != self._first else (self._start, self._initial)
        return (ended - since) / (finished - before), ended, finished

    def _print_line(self) -> None:
        now = self._last_line = time.monotonic()
        self._printed = self._done
        note = f", {self._note}" if self._note else ""
        done = f"{self._done}/{self._total} {self._unit}"
        # Only `advance` ends a step.
        part = f" and {min(self._share, 0.99):.0%} of the next {self._step}" if self._share else ""
        if self._latest[1] == self._initial:
            part = f", the first {self._step}" if self._step else ""
            echo(f"{self._task}: {done}{part} for {clock(now - self._start)}{note}")
            return
        # The first step also took the time of preparations.
        known = self._last != self._first or self._done == self._total
        rough = "" if self._first is not None and known else "about "
        rate = float(f"{self._rate(now):.2g}")  # two digits, without an exponent
        speed = f"{rate:,g}/s, {rough}{clock(self._left(now))} left"
        echo(f"{self._task}: {done}{part}, {speed}{note}")


def clock(seconds: float) -> str:
    """A duration in minutes and seconds, or in hours, minutes and seconds from one hour on."""
    if seconds == float("inf"):
        return "unknown time"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
