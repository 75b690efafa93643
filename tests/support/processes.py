"""Child processes of a test, forked from a clean server that has imported all they need."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.runs"])


@contextmanager
def child(function: Callable[..., object], *arguments: object) -> Iterator[ForkServerProcess]:
    """Within the block, a process that calls a function; it is killed at the end."""
    process = _context.Process(target=_quietly, args=(function, arguments))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def ended(process: ForkServerProcess, seconds: float = 120.0) -> int:
    """The exit code of a process, or minus the signal that ended it; waits for its end."""
    process.join(seconds)
    assert process.exitcode is not None, f"the child did not end in {seconds} s"
    return process.exitcode


def until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    """Wait for a condition.

    Only what hangs takes so long: three processes on two slow cores may take a minute to start.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what the test waits for did not happen"
        time.sleep(0.005)


def _quietly(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    # The server ignores Ctrl-C; a child must end with its exit code.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        function(*arguments)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
