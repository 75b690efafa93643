"""Files that appear whole or not at all, and stay when the machine stops."""

import hashlib
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from interp.errors import UserError


def write_whole(file: Path, write_to: Callable[[Path], object]) -> None:
    """Let `write_to` fill a file beside `file`, then rename it into place.

    Raises:
        UserError: it cannot be written, as on a full disk.
    """
    unfinished = unfinished_name(file)
    with writing(file):
        try:
            write_to(unfinished)
            sync(unfinished)
            unfinished.replace(file)
            sync(file.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def unfinished_name(path: Path) -> Path:
    """Where this process fills what will be renamed to `path`."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}")


def remove_unfinished(folder: Path) -> None:
    """Clear away what processes of this machine that have ended left half written in a folder."""
    for path in folder.glob(".*"):
        rest, _, process = path.name.rpartition(".")
        ours = rest.endswith(f".{platform.node()}") and process.isdecimal()
        if ours and has_ended(platform.node(), int(process)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def has_ended(host: str, process: int) -> bool:
    """Whether a process was on this machine and has ended; False of other machines."""
    if host != platform.node():
        return False
    try:
        # One that was killed stays as a zombie until its parent asks for it.
        return bool(psutil.Process(process).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Within the block: errors of the file system are told as the user's to mend."""
    try:
        yield
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        raise UserError(
            f"cannot write {what}: {reason}; nothing that was written before is lost. Mend it, "
            "say by freeing space, and the same command goes on where it stopped"
        ) from error


def sync(path: Path) -> None:
    """Have the operating system bring a file, or a folder's list of files, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
