"""The processes of one worker whose model is spread over them by tensor parallelism: the ranks.

The worker starts the ranks and waits for them. Rank 0 claims shards, writes and shows progress; the
others follow it (`interp.runs.together`). If one of them fails, all are stopped, and the worker's
record says which one failed and how.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from interp.errors import UserError
from interp.runs.workers import end_of, interrupt, share_of_cores

LOST = 3
"""Exit code of a rank that ended because another one did not take part any more."""

POLL = 0.1
"""Number of seconds between two looks at the ranks."""

GRACE = 10.0
"""Number of seconds in which the other ranks end by themselves once one has ended."""

PATIENCE = 3.0
"""Number of seconds that rank 0 has to release its claim; a worker has `workers.PATIENCE`."""


@dataclass(frozen=True)
class Rank:
    """One of the processes that hold a model together."""

    number: int
    process: "subprocess.Popen[bytes]"
    log: Path | None
    """Where its output goes; None for rank 0, whose output is the worker's."""

    def problem(self, count: int) -> str:
        """How the process failed."""
        code = self.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        tail = f"; the end of its output:\n{end_of(self.log)}" if self.log and code > 0 else ""
        return f"process {self.number} of the {count} that hold the model {how}{tail}"


def run_ranks(command: Callable[..., list[str]], count: int) -> None:
    """Run a command in some processes that find each other, until all of them have ended.

    `command` is a function from further options (`--rank`, `--meeting`, `--parent`) to the command
    line of a rank.

    Raises:
        UserError: a rank other than rank 0 failed, or a rank was killed.
        SystemExit: rank 0 failed by itself, and has said how.
    """
    with tempfile.TemporaryDirectory(prefix="interp-ranks-") as folder, ExitStack() as streams:
        ranks: list[Rank] = []
        try:
            for number in range(count):
                log = Path(folder, f"{number}.log") if number else None
                output = streams.enter_context(log.open("xb")) if log else None
                options = ["--rank", str(number), "--meeting", str(Path(folder, "meeting"))]
                process = subprocess.Popen(
                    command(*options, "--parent", str(os.getpid())),
                    env={**os.environ, **share_of_cores(count)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
                ranks.append(Rank(number, process, log))
            _wait(ranks)
            _check(ranks)
        finally:
            _stop(ranks)


def _wait(ranks: Sequence[Rank]) -> None:
    """Wait until all ranks have ended, or for a while after one of them failed or rank 0 ended."""
    end = float("inf")
    while None in [rank.process.poll() for rank in ranks] and time.monotonic() < end:
        if end == float("inf") and (ranks[0].process.returncode == 0 or _failed(ranks)):
            end = time.monotonic() + GRACE
        time.sleep(POLL)


def _failed(ranks: Sequence[Rank]) -> list[Rank]:
    """The ranks that have failed, the cause first: one that was killed, or failed by itself."""
    failed = [rank for rank in ranks if rank.process.returncode not in (None, 0)]
    return sorted(failed, key=lambda r: (r.process.returncode > 0, r.process.returncode == LOST))


def _check(ranks: Sequence[Rank]) -> None:
    if ranks[0].process.returncode == 0 or not (failed := _failed(ranks)):
        return
    cause = failed[0]
    if cause.number == 0 and cause.process.returncode > 0:
        raise SystemExit(cause.process.returncode)
    raise UserError(cause.problem(len(ranks)))


def _stop(ranks: Sequence[Rank]) -> None:
    """Stop the ranks that are left; rank 0 first, which waits for passes in which all take part."""
    for rank in ranks:
        if rank.process.poll() is None:
            if rank.number == 0:
                interrupt(rank.process, PATIENCE)
            else:
                rank.process.kill()
                rank.process.wait()
