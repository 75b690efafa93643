"""Checkpoints that are whole: a process may be killed while it writes one.

A checkpoint counts from the moment when a manifest with the checksums of its files lies beside
them. What lies in the folder is not trusted: links and other files than the manifest's are refused.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from interp.errors import UserError
from interp.files import checksum, inside, names_in, remove_plain
from interp.runs.schemas import Hash, Record, read_record, write_record

MANIFEST = "manifest.json"

_NAME = re.compile(r"checkpoint-([0-9]{1,12})")

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}$")]


class Manifest(Record):
    """checkpoint-STEP/manifest.json."""

    files: dict[FileName, Hash]


def declare_whole(checkpoint: Path) -> None:
    """Write the manifest of a checkpoint that was just saved.

    Raises:
        UserError: it holds something else than plain files, or cannot be written.
    """
    files = {name: checksum(inside(checkpoint, name)) for name in names_in(checkpoint)}
    files.pop(MANIFEST, None)  # of an earlier save of the same step
    write_record(inside(checkpoint, MANIFEST), Manifest(files=files))


def last_whole(folder: Path) -> tuple[int, Path] | None:
    """The last checkpoint that is whole, with its step; None if there is none.

    One that was being written stays, and is written again when its step is reached: without a
    manifest nothing proves that it is ours.
    """
    found = (step for step in map(_step, names_in(folder)) if step is not None)
    steps = sorted(found, reverse=True)
    for step in steps:
        checkpoint = folder / f"checkpoint-{step}"
        if _is_whole(checkpoint):
            return step, checkpoint
    return None


def remove_checkpoints(folder: Path, *, but: int | None = None) -> None:
    """Remove the checkpoints in a folder that have a manifest: the files that it names.

    Whatever else is in them stays, as do checkpoints that something else wrote.

    Args:
        folder: where they are.
        but: the step of one that stays.
    """
    for name in names_in(folder):
        if _step(name) not in (None, but) and (manifest := _manifest(folder / name)):
            with suppress(OSError):  # a link in its place, or further files within
                remove_plain(folder / name, [*manifest.files, MANIFEST])
                (folder / name).rmdir()


def _step(name: str) -> int | None:
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def _is_whole(checkpoint: Path) -> bool:
    """Whether the files are those of the manifest, as they were written."""
    manifest = _manifest(checkpoint)
    try:
        if manifest is None or {*manifest.files, MANIFEST} != set(names_in(checkpoint)):
            return False
        return all(
            checksum(inside(checkpoint, name)) == written
            for name, written in manifest.files.items()
        )
    except (UserError, FileNotFoundError):
        return False


def _manifest(checkpoint: Path) -> Manifest | None:
    """The manifest; None where there is none that can be read."""
    try:
        return read_record(inside(checkpoint, MANIFEST), Manifest)
    except (UserError, FileNotFoundError, NotADirectoryError):
        return None
