"""A guard within the process: Python's own calls that write, remove or start are watched.

It sees only what goes through Python (`jail` holds for the rest), but it tells an attempt from a
mere failure: what a read-only disk would hide is on record here, with the path.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

PathLike = str | bytes | os.PathLike[str]


class Escaped(BaseException):
    """An attempt to reach beyond the scratch folder; no `except Exception` hides it."""


class Guard:
    """Lets this process change files in some folders only. It cannot be taken off again."""

    def __init__(self, *folders: Path, log: int = -1) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.log = log
        """Descriptor that gets a line on each attempt, also on those that are then swallowed."""
        self._asked: tuple[Path, ...] = ()
        self._busy = False

    def install(self) -> None:
        """Watch from now on."""
        sys.addaudithook(self._watch)

    def answer_as_read_only(self, places: Iterable[Path]) -> None:
        """From now on, to write in these places is no escape but fails as on a read-only disk.

        They are what a command line names itself: it is the user's own wish to write there.
        """
        self._asked = tuple(places)

    def _watch(self, event: str, arguments: tuple[object, ...]) -> None:
        rule = _RULES.get(event)
        if rule is None or self._busy:
            return
        self._busy = True  # the rule's own look at the disk is not watched
        try:
            for path in rule(arguments):
                self._check(event, path)
        finally:
            self._busy = False

    def _check(self, event: str, path: Path | str) -> None:
        if isinstance(path, Path):
            if any(path.is_relative_to(folder) for folder in (*self.folders, Path(os.devnull))):
                return
            if any(path.is_relative_to(place) for place in self._asked):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        attempt = f"{event} {str(path)[:300]!r}"
        if self.log >= 0:
            os.write(self.log, f"{attempt}\n".encode())
        raise Escaped(attempt)


def _absolute(path: object, folder: object = -1) -> str:
    """A path from the root; `folder` is the descriptor that it is relative to."""
    text = os.fsdecode(path)  # type: ignore[arg-type]
    link = f"/proc/self/fd/{folder}" if _is_descriptor(folder) else "/proc/self/cwd"
    return text if text.startswith("/") else f"{Path(link).readlink()}/{text}"


def _is_descriptor(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _entry(path: object, folder: object = -1) -> Path:
    """What is removed, renamed or made: the name itself, in the real folder that holds it."""
    head, tail = os.path.split(_absolute(path, folder).rstrip("/") or "/")
    if tail in ("", ".", ".."):
        return _content(path, folder)
    return Path(os.path.realpath(head), tail)


def _content(path: object, folder: object = -1) -> Path:
    """What is written or changed: that which a link finally leads to."""
    if _is_descriptor(path):
        return Path(os.path.realpath(f"/proc/self/fd/{path}"))
    return Path(os.path.realpath(_absolute(path, folder)))


def _opened(arguments: tuple[object, ...]) -> list[Path]:
    path, mode, flags = arguments
    writes = isinstance(flags, int) and flags & _WRITING
    writes = writes or (isinstance(mode, str) and set(mode) & set("wax+"))
    return [_content(path)] if writes and not isinstance(path, int) else []


def _killed(arguments: tuple[object, ...]) -> list[Path | str]:
    """A signal is only for children and one's own group; 0 merely asks whether one is alive."""
    process, number = arguments
    try:
        own = number == 0 or os.getpgid(process) == os.getpgid(0)  # type: ignore[arg-type]
    except ProcessLookupError:
        own = True
    return [] if own or _is_child(process) else [f"signal {number} to {process}"]


def _is_child(process: object) -> bool:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return f"\nPPid:\t{os.getpid()}\n" in status


def _named(arguments: tuple[object, ...]) -> list[Path | str]:
    return [" ".join(map(repr, arguments))]


Rule = Callable[[tuple[object, ...]], Iterable[Path | str]]

_RULES: dict[str, Rule] = {
    "open": _opened,
    "os.remove": lambda a: [_entry(a[0], a[1])],
    "os.rmdir": lambda a: [_entry(a[0], a[1])],
    "os.mkdir": lambda a: [_entry(a[0], a[2])],
    "os.rename": lambda a: [_entry(a[0], a[2]), _entry(a[1], a[3])],
    "os.link": lambda a: [_content(a[0], a[2]), _entry(a[1], a[3])],
    "os.symlink": lambda a: [_entry(a[1], a[2])],
    "os.truncate": lambda a: [_content(a[0])],
    "os.chmod": lambda a: [_content(a[0], a[2])],
    "os.chown": lambda a: [_content(a[0], a[3])],
    "os.utime": lambda a: [_content(a[0], a[3])],
    "os.setxattr": lambda a: [_content(a[0])],
    "os.removexattr": lambda a: [_content(a[0])],
    "shutil.rmtree": lambda a: [_entry(a[0], a[1] if a[1:] and a[1] is not None else -1)],
    "shutil.move": lambda a: [_entry(a[0]), _entry(a[1])],
    "os.system": _named,
    "os.exec": _named,
    "os.posix_spawn": _named,
    "os.spawn": _named,
    "subprocess.Popen": _named,
    "socket.connect": _named,
    "socket.bind": _named,
    "socket.sendto": _named,
    "os.kill": _killed,
    "os.killpg": _killed,
}
"""Audit events and what each would change: paths, or in words what lies outside in any case."""
