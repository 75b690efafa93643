"""A training run's folder: its record, and complete checkpoints.

A process may be killed while it writes a checkpoint. Each checkpoint is therefore saved in a new
folder and renamed into place once it has a manifest with the checksums of its files. The folder's
content is not trusted, so links, and files that the manifest does not list, are rejected.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints, model_validator

from interp import files
from interp.errors import UserError, shortened
from interp.models.packaged import packaged
from interp.options import flag
from interp.runs import records

RECORD = "train.json"

Metric = Annotated[float, Field(allow_inf_nan=False)]


class TrainIdentity(records.Record):
    """Everything that the weights depend on."""

    task: records.Text
    options: dict[str, JsonValue]
    model: records.ModelName
    origin: dict[str, JsonValue]
    """The model before training: its source and loading options."""
    lessons: records.Count
    data: records.Hash
    """A hash of all prompts and answers, in the form that the model reads."""
    code: records.Hash


class TrainRecord(records.Record):
    """train.json."""

    training: TrainIdentity
    too_long: records.Count
    """Number of prompts omitted because they have more tokens than the model can read."""
    steps: records.Count
    parameters: records.Count
    history: list[records.Call]
    finished: records.Text | None = None
    """Time when the model was written; None during training."""
    seconds: dict[records.Text, Metric] = Field(default_factory=dict)
    """Wall-clock time and processor time of the call that finished training."""
    metrics: dict[records.Text, dict[records.Text, Metric]] = Field(default_factory=dict)
    """Scores by held-out split, each with the number of prompts."""

    @model_validator(mode="after")
    def _check_metrics(self) -> "TrainRecord":
        if any("prompts" not in scores for scores in self.metrics.values()) or (
            self.finished and not self.metrics
        ):
            raise ValueError("a finished training run needs the scores of its held-out splits")
        return self


def training_of(model: str) -> TrainRecord | None:
    """The record of a model, by its place, if `interp train` finished it; otherwise None."""
    with suppress(UserError):  # another program's folder must not break a report
        kind = packaged(model)
        folder = Path(model) if kind is None else kind.folder(model)
        if os.path.isdir(folder):  # noqa: PTH112
            record = records.read_record(files.inside(folder, RECORD), TrainRecord)
            return record if record is not None and record.finished else None
    return None


def check_same_training(folder: Path, earlier: TrainIdentity, now: TrainIdentity) -> None:
    """Check that a folder's training run is the current one."""
    old, new = _facts(earlier), _facts(now)
    for what in dict.fromkeys([*old, *new]):
        before, after = old.get(what), new.get(what)
        if before != after:
            raise UserError(
                f"{folder} belongs to a different training run: its {what} is "
                f"{shortened(repr(before), 100)}, but that of this run is "
                f"{shortened(repr(after), 100)}; repeat that run's options, or use another --out"
            )


def _facts(identity: TrainIdentity) -> dict[str, object]:
    options = {flag(name): value for name, value in identity.options.items()}
    origin = {f"origin ({name})": value for name, value in identity.origin.items()}
    return {
        **options,
        "task": identity.task,
        "model": identity.model,
        **origin,
        **identity.model_dump(include={"lessons", "data", "code"}),
    }


MANIFEST = "manifest.json"
OURS = ".training"
"""File that marks a folder in which no other program had saved checkpoints when training began."""

_NAME = re.compile(r"checkpoint-([0-9]{1,12})")

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}$")]


class CheckpointManifest(records.Record):
    """checkpoint-STEP/manifest.json."""

    files: dict[FileName, records.Hash]


def take(folder: Path) -> None:
    """Mark a folder as ours, and remove checkpoints that a killed process did not finish saving.

    Raises:
        UserError: the folder contains another program's checkpoints, contains links, pipes or
            folders in place of this program's files, or is not writable.
    """
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files.remove_unfinished(folder.resolve())
    checkpoints = _checkpoints(folder)
    for checkpoint in checkpoints.values():
        if not files.is_folder(checkpoint):
            raise UserError(f"{checkpoint} is not a checkpoint folder; remove it")
        for name in files.names_in(checkpoint):
            if not files.is_plain(checkpoint / name):
                raise UserError(f"{checkpoint / name} is not a plain file; remove {checkpoint}")
    if _is_ours(folder):
        return
    if foreign := [path for path in checkpoints.values() if not _is_whole(path)]:
        raise UserError(
            f"{folder} holds {foreign[0].name}, which another program wrote; train in another "
            "folder"
        )
    files.write_whole(folder / OURS, Path.touch)


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Create a folder for checkpoints that are being saved; remove it after the block."""
    place = files.unfinished_name(folder.resolve() / "checkpoints")
    with files.writing(place):
        place.mkdir()
    try:
        yield place
    finally:
        with suppress(OSError):
            files.remove_unfinished_folder(place)


def keep(checkpoint: Path, folder: Path) -> None:
    """Move a newly saved checkpoint into place, then remove earlier checkpoints."""
    declare_whole(checkpoint)
    place = folder.resolve() / checkpoint.name
    with files.writing(place):
        if _is_ours(folder):
            files.remove_own(place)  # a damaged checkpoint
        checkpoint.rename(place)  # fails if another program's is there
        files.sync(place.parent)
    remove_checkpoints(folder, but=_step(checkpoint.name))


def declare_whole(checkpoint: Path) -> None:
    """Write the manifest of a checkpoint."""
    sums = {
        name: files.checksum(files.inside(checkpoint, name)) for name in files.names_in(checkpoint)
    }
    records.write_record(files.inside(checkpoint, MANIFEST), CheckpointManifest(files=sums))


def last_whole(folder: Path) -> tuple[int, Path] | None:
    """The last complete checkpoint, with its step; None if there is none."""
    for step, checkpoint in sorted(_checkpoints(folder).items(), reverse=True):
        if _is_whole(checkpoint):
            return step, checkpoint
    return None


def remove_checkpoints(folder: Path, *, but: int | None = None) -> None:
    """Remove checkpoints, but only from a folder that is marked as ours.

    `but` is the step of a checkpoint to keep; if None, the folder's marker is also removed.
    """
    if not _is_ours(folder):
        return
    for step, checkpoint in _checkpoints(folder).items():
        if step != but:
            with suppress(OSError):  # the checkpoint contains something other than files
                files.remove_own(checkpoint)
    if but is None:
        files.remove_plain(folder.resolve(), [OURS])


def _checkpoints(folder: Path) -> dict[int, Path]:
    """Every path with the name of a checkpoint, by step; the folder itself may be a link."""
    folder = folder.resolve()
    steps = {_step(name): folder / name for name in files.names_in(folder)}
    return {step: path for step, path in steps.items() if step is not None}


def _is_ours(folder: Path) -> bool:
    return OURS in files.names_in(folder.resolve())


def _step(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def _is_whole(checkpoint: Path) -> bool:
    """Whether the checkpoint's files are exactly those in its manifest, unchanged."""
    try:
        manifest = records.read_record(files.inside(checkpoint, MANIFEST), CheckpointManifest)
        names = set(files.names_in(checkpoint)) - {MANIFEST}
        sums = {name: files.checksum(files.inside(checkpoint, name)) for name in names}
        return manifest is not None and manifest.files == sums
    except (UserError, FileNotFoundError, NotADirectoryError):
        return False
