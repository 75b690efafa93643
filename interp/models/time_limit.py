"""Limits on what code of somebody else's, such as a chat template, may take: time and memory."""

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def limited(seconds: float, memory: int) -> Iterator[None]:
    """Within the block: an error once this process has computed or taken too much.

    Computing time does not pass faster on a busy machine. Python delivers signals to the main
    thread alone, and the limit on memory is the whole process's; in other threads there is none.

    Args:
        seconds: of computing time.
        memory: bytes, beyond what the process has; on Linux alone, elsewhere without a limit.

    Raises:
        TimeoutError: it takes longer.
        MemoryError: it takes more.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"it takes more than {seconds:g} s")

    earlier = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        with _memory_limit(memory):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


@contextmanager
def _memory_limit(memory: int) -> Iterator[None]:
    """Within the block the address space grows by so many bytes at most, where Linux is."""
    earlier = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
        most = pages * resource.getpagesize() + memory
        if earlier[0] == resource.RLIM_INFINITY or most < earlier[0]:
            resource.setrlimit(resource.RLIMIT_AS, (most, earlier[1]))
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"it takes more than {memory:,} bytes of memory") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, earlier)
