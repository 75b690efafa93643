"""A stand-in for `subprocess.Popen` that starts workers of interp alone, and few of them.

A worker is a fork of this process: it is there at once, and the guard watches it as well.
"""

import errno
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import IO, Any

from interp.cli import main

LIMIT = 4
"""Workers that one process may have; the next is refused, as by a machine that is full."""


class Forked:
    """A worker process; the part of Popen's interface that is used."""

    started = 0
    """How many this process has started."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
        **_: Any,
    ) -> None:
        self.args = args
        if list(args[1:3]) != ["-m", "interp"]:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(args[0]))
        if Forked.started == LIMIT:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        Forked.started += 1
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._work(env, {1: stdout, 2: stderr})

    def __class_getitem__(cls, _: object) -> type["Forked"]:
        return cls

    def poll(self) -> int | None:
        """The exit code, once there is one."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                assert timeout is not None
                raise subprocess.TimeoutExpired(list(self.args), timeout)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _work(self, env: Mapping[str, str] | None, streams: Mapping[int, Any]) -> None:
        code = 1
        try:
            for number, stream in streams.items():
                if hasattr(stream, "fileno"):
                    os.dup2(stream.fileno(), number)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            os.environ.update(env or {})
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as in any new process
            Forked.started = 0
            code = main(list(self.args[3:]))
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def install() -> None:
    """Let nothing else be started."""
    subprocess.Popen = Forked  # type: ignore[assignment,misc]
