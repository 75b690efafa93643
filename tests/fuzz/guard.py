"""A guard within the process: Python's own calls that write, remove or start are watched.

It sees only what goes through Python (`jail` holds for the rest), but it tells an attempt from a
mere failure: what a read-only disk would hide is on record here, with the path.
"""

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# By event: each path among its arguments, the descriptor that it is relative to, and whether the
# call reaches what a link there leads to, not the link.
_PATHS: dict[str, Sequence[tuple[int, int | None, bool]]] = {
    "os.remove": ((0, 1, False),),
    "os.rmdir": ((0, 1, False),),
    "os.mkdir": ((0, 2, False),),
    "os.rename": ((0, 2, False), (1, 3, False)),
    "os.link": ((0, 2, True), (1, 3, False)),
    "os.symlink": ((1, 2, False),),
    "os.truncate": ((0, None, True),),
    "os.chmod": ((0, 2, True),),
    "os.chown": ((0, 3, True),),
    "os.utime": ((0, 3, True),),
    "os.setxattr": ((0, None, True),),
    "shutil.rmtree": ((0, None, False),),
    "shutil.move": ((0, None, False), (1, None, False)),
}
_REFUSED = {
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen"),
    *("socket.connect", "socket.bind", "socket.sendto"),
}


class Escaped(BaseException):
    """An attempt to reach beyond the scratch folder; no `except Exception` hides it."""


class Guard:
    """Lets this process change files in some folders only. It cannot be taken off again."""

    def __init__(self, *folders: Path, log: int = -1) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.asked: Iterable[Path] = ()
        """Where to write fails as on a read-only disk: the command line itself names it."""
        self.log = log
        """Descriptor that gets a line on each attempt, also on those that are then swallowed."""
        self._busy = False

    def install(self) -> None:
        """Watch from now on."""
        sys.addaudithook(self._watch)

    def _watch(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._busy or (event not in _PATHS and event not in _REFUSED | {"open", "os.kill"}):
            return
        self._busy = True  # its own look at the disk is not watched
        try:
            for path in _reached(event, arguments):
                self._check(event, path)
        finally:
            self._busy = False

    def _check(self, event: str, path: Path | None) -> None:
        if path is not None:
            if any(path.is_relative_to(folder) for folder in (*self.folders, Path(os.devnull))):
                return
            if any(path.is_relative_to(place) for place in self.asked):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        attempt = f"{event} {str(path)[:300]!r}"
        if self.log >= 0:
            os.write(self.log, f"{attempt}\n".encode())
        raise Escaped(attempt)


def _reached(event: str, arguments: tuple[object, ...]) -> Iterator[Path | None]:
    """What a call would change; None for what is outside in any case."""
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & _WRITING
        if not isinstance(path, int) and (writes or set(str(mode)) & set("wax+")):
            yield _resolved(path, -1, follow=True)
    elif event == "os.kill":
        process, number = arguments
        if number and process not in (0, os.getpid()):
            yield None
    elif event in _REFUSED:
        yield None
    for place, relative, follow in _PATHS.get(event, ()):
        folder = -1 if relative is None else arguments[relative]
        yield _resolved(arguments[place], folder, follow=follow)


def _resolved(path: object, folder: object, *, follow: bool) -> Path:
    if isinstance(path, int):
        return Path(os.path.realpath(f"/proc/self/fd/{path}"))
    text = os.fsdecode(path)  # type: ignore[arg-type]
    if not text.startswith("/"):
        own = isinstance(folder, int) and folder >= 0
        text = f"{Path(f'/proc/self/fd/{folder}' if own else '/proc/self/cwd').readlink()}/{text}"
    head, tail = os.path.split(text.rstrip("/") or "/")
    if follow or tail in ("", ".", ".."):
        return Path(os.path.realpath(text))
    return Path(os.path.realpath(head), tail)
