"""Atomic writing of files, and access to folders without following links out of them.

If others can write to a folder, its entries may be links, pipes or devices. Everything in such a
folder is accessed through `inside`, and read through `read_bytes`.
"""

import errno
import fcntl
import hashlib
import os
import platform
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedReader
from pathlib import Path
from secrets import token_hex

import psutil

from interp.errors import UserError

RECORD_BYTES = 2**26
"""Largest size, in bytes, of a record, log or claim."""

_UNFINISHED = re.compile(
    r"\..+\.(?P<space>[0-9a-f]{16})\.(?P<process>[0-9]{1,9})\.[0-9a-f]{16}\.unfinished"
)

_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Use a writable folder"),
    errno.ENOENT: "Restore the folder, or use another one",
}


def inside(root: Path, *parts: str) -> Path:
    """The path root/parts, if no part is a link or leads out of `root`; `root` may be a link.

    Raises:
        UserError: a part is not a plain name, or is a link.
    """
    path = root
    for part in parts:
        if part in ("", ".", "..") or "/" in part or os.sep in part or "\0" in part:
            raise UserError(f"{part[:80]!r} is not the name of a file in {root}")
        path = path / part
        if path.is_symlink():
            raise UserError(
                f"{path} is a link; links out of {root} are not followed. Remove the link"
            )
    return path


def open_plain(file: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises:
        FileNotFoundError: there is no such file.
        UserError: the file is a link, folder, pipe or device, or cannot be read.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{file} is a link, which is not followed; remove it") from error
        raise UserError(f"cannot read {file}: {reason_of(error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{file} is not a plain file; remove it")
    return os.fdopen(descriptor, "rb")


def read_bytes(file: Path, *, limit: int | None = None) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises:
        FileNotFoundError: there is no such file.
        UserError: the file is larger, is not a regular file, or cannot be read.
    """
    with open_plain(file) as stream, reading(file):
        size = os.fstat(stream.fileno()).st_size
        if limit is not None and size > limit:
            raise UserError(f"{file} has {size:,} bytes; expected at most {limit:,}")
        return stream.read()


def user_cache() -> Path:
    """The folder of what is kept for later commands: interp in the user's (XDG_CACHE_HOME)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "interp"


def check_fits(file: Path) -> None:
    """Reject a file that is larger than the free memory."""
    with reading(file):
        size = file.stat().st_size
    free = psutil.virtual_memory().available
    if size > free:
        raise UserError(
            f"{file} has {size:,} bytes, which exceeds the {free:,} bytes of free memory; use a "
            "part of the file"
        )


def is_folder(path: Path) -> bool:
    """Whether a path is a folder and not a link to a folder."""
    with suppress(OSError, ValueError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def is_plain(path: Path) -> bool:
    """Whether a path is a regular file and not a link to a file."""
    with suppress(OSError, ValueError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def names_in(folder: Path) -> list[str]:
    """Sorted names of a folder's entries; empty if the path is not a folder, or is a link."""
    if not is_folder(folder):
        return []
    with reading(folder):
        return sorted(path.name for path in folder.iterdir())


def make_folder(root: Path, *parts: str) -> Path:
    """The folder root/parts, created if missing; `root` must exist."""
    for count in range(1, len(parts) + 1):
        path = inside(root, *parts[:count])
        with writing(path):
            while not is_folder(path):
                try:
                    path.mkdir()
                except FileExistsError:
                    # Another process may just have created it, or removed what stood in its place.
                    if os.path.lexists(path) and not is_folder(path):
                        raise UserError(f"{path} is not a folder; remove it") from None
    return inside(root, *parts)


def write_whole(file: Path, write_to: Callable[[Path], object], *, replacing: bool = True) -> bool:
    """Let `write_to` fill an empty file at an absolute path, then rename that file to `file`.

    Returns whether `file` was written: False if it exists and is not to be replaced (`replacing`).
    """
    with writing(file):
        unfinished = unfinished_name(file)
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        try:
            write_to(unfinished)
            sync(unfinished)
            if replacing:
                unfinished.replace(file)
            elif not _renamed_to_a_free_name(unfinished, file):
                return False
            sync(file.parent)
        finally:
            unfinished.unlink(missing_ok=True)  # created above, under a random name
    return True


def _renamed_to_a_free_name(written: Path, file: Path) -> bool:
    # A rename would replace the file of a process that was faster; a second name cannot.
    try:
        os.link(written, file)
    except FileExistsError:
        return False
    except OSError:  # the file system has no hard links
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            return False
        written.replace(file)
    return True


def unfinished_name(path: Path) -> Path:
    """The temporary, unpredictable path of an entry that will be renamed to `path`."""
    mark = f"{process_space()}.{os.getpid()}.{token_hex(8)}"
    return path.absolute().with_name(f".{path.name}.{mark}.unfinished")


def remove_unfinished(folder: Path) -> None:
    """Remove a folder's unfinished entries whose processes, on this machine, have ended."""
    for name in names_in(folder):
        match = _UNFINISHED.fullmatch(name)
        if match and has_ended(match["space"], int(match["process"])):
            with suppress(OSError):
                remove_unfinished_folder(folder / name)


def remove_own(path: Path) -> None:
    """Remove a file, or a folder that contains only regular files.

    The caller has made it, or has found its folder to be marked as ours.
    """
    if not is_folder(path):
        path.unlink(missing_ok=True)  # this removes a link itself, not its target
        return
    remove_plain(path, names_in(path))
    path.rmdir()


def remove_unfinished_folder(folder: Path) -> None:
    """Remove a folder with an `unfinished_name`, its regular files, and one level of subfolders."""
    for name in names_in(folder):
        if is_folder(folder / name):
            remove_own(folder / name)
    remove_own(folder)


def remove_plain(folder: Path, names: Iterable[str]) -> None:
    """Remove a folder's regular files that have these names, but not links or folders.

    The folder is opened only once, so replacing it in the meantime has no effect.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in names:
            with suppress(FileNotFoundError):
                state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISREG(state.st_mode):
                    os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock on a folder while the block runs; yield whether the lock is held.

    A lock ends with its process, however the process ends. If the file system has no locks, every
    request succeeds. Others may hold a shared lock at the same time; without `wait`, a lock that
    others hold is not waited for.
    """
    file = inside(folder, f".{name}.lock")
    kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    with writing(file):
        descriptor = _lock(file, kind)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            _unlock(file, descriptor)


_OURS = b"lock of interp\n"
"""Content of the lock files that we create; we never remove a file with any other content."""


def _lock(file: Path, kind: int) -> int | None:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o666)
            os.write(descriptor, _OURS)
        except FileExistsError:
            try:
                descriptor = os.open(file, flags)
            except FileNotFoundError:
                continue
        try:
            fcntl.flock(descriptor, kind)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException as error:
            # Either the wait was interrupted (KeyboardInterrupt), or the file system has no locks.
            if getattr(error, "errno", None) not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
                os.close(descriptor)
                raise
        if _is_opened(file, descriptor):
            return descriptor
        os.close(descriptor)  # the last holder removed the file, so locking it has no effect


def _unlock(file: Path, descriptor: int) -> None:
    """Release a lock, and remove its file if we created it and no other process holds it."""
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.pread(descriptor, len(_OURS) + 1, 0) == _OURS and _is_opened(file, descriptor):
            file.unlink()
    os.close(descriptor)


def _is_opened(file: Path, descriptor: int) -> bool:
    """Whether a path still leads to the file that was opened at that path."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@cache
def process_space() -> str:
    """An id for the machine, or the container on it, within which process ids are unique."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    return hashlib.sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:16]


def has_ended(space: str, process: int) -> bool:
    """Whether a process in this process space has ended; False for a process in another space."""
    if space != process_space():
        return False
    try:
        # A killed process remains a zombie until its parent waits for it.
        return bool(psutil.Process(process).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, OverflowError, ValueError):
        return False


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Turn an OSError within the block into a UserError with advice."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Remove the cause")
        raise UserError(
            f"cannot write {what}: {reason_of(error)}. Everything written so far is kept. "
            f"{advice}, then rerun the same command to resume"
        ) from error


@contextmanager
def reading(what: Path) -> Iterator[None]:
    """Turn an OSError within the block into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {what}: {reason_of(error)}") from error


def reason_of(error: OSError) -> str:
    """The operating system's message for an error, formatted to follow a colon."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()


def sync(path: Path) -> None:
    """Force the operating system to write a file, or a folder's list of files, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems do not sync folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def checksum(file: Path) -> str:
    """SHA-256 of a regular file's content."""
    with open_plain(file) as stream, reading(file):
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_replaceable(page: Path) -> None:
    """Check that a page overwrites nothing but another page."""
    with reading(page):
        if page.is_dir():
            raise UserError(f"{page} is a folder; expected a file, such as {page / 'report.html'}")
        if not os.path.lexists(page):
            return
        if not is_plain(page):
            raise UserError(f"{page} exists and is not a regular file; pass another name")
        with page.open("rb") as stream:
            opening = stream.read(14)
    if opening.lower() != b"<!doctype html":
        raise UserError(f"{page} exists and is not a page; pass another name, or remove the file")
