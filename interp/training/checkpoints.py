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
from interp.files import (
    checksum,
    inside,
    names_in,
    remove_own,
    remove_plain,
    write_whole,
    writing,
)
from interp.runs.schemas import Hash, Record, read_record, write_record

MANIFEST = "manifest.json"
OURS = ".training"
"""Marks a folder that held no other program's checkpoints when training began."""


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


def take(folder: Path) -> None:
    """Mark a folder as ours.

    Every checkpoint in it belongs to this training and is removed at its end.

    Raises:
        UserError: it holds some that this program did not write, or cannot be written to.
    """
    if OURS in names_in(folder):
        return
    foreign = [name for name in names_in(folder) if _step(name) and not _is_whole(folder / name)]
    if foreign:
        raise UserError(
            f"{folder} holds {foreign[0]}, which another program wrote; train in another folder"
        )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / OURS, Path.touch)


def last_whole(folder: Path) -> tuple[int, Path] | None:
    """The last checkpoint that is whole, with its step; None if there is none."""
    found = (step for step in map(_step, names_in(folder)) if step is not None)
    steps = sorted(found, reverse=True)
    for step in steps:
        checkpoint = folder / f"checkpoint-{step}"
        if _is_whole(checkpoint):
            return step, checkpoint
    return None


def remove_checkpoints(folder: Path, *, but: int | None = None) -> None:
    """Remove the checkpoints of a folder that was taken, and nothing else.

    Args:
        folder: where they are.
        but: the step of one that stays; without it the folder is given back.
    """
    if OURS not in names_in(folder):
        return
    for name in names_in(folder):
        if _step(name) not in (None, but):
            with suppress(OSError):  # a link in its place, or more than files within
                remove_own(folder / name)
    if but is None:
        remove_plain(folder, [OURS])


def _step(name: str) -> int | None:
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def _is_whole(checkpoint: Path) -> bool:
    """Whether the files are those of the manifest, as they were written."""
    try:
        manifest = read_record(inside(checkpoint, MANIFEST), Manifest)
        if manifest is None or {*manifest.files, MANIFEST} != set(names_in(checkpoint)):
            return False
        return all(
            checksum(inside(checkpoint, name)) == expected
            for name, expected in manifest.files.items()
        )
    except (UserError, FileNotFoundError, NotADirectoryError):
        return False
