"""What a training run leaves on record, and whether a folder holds that very run."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue

from interp.errors import UserError, shortened
from interp.files import inside
from interp.models.names import is_folder
from interp.models.organisms import PREFIX, organism_folder
from interp.options import flag
from interp.runs.records import Call, Count, Hash, ModelName, Record, Text, read_record

RECORD = "train.json"

Metric = Annotated[float, Field(allow_inf_nan=False)]


class TrainIdentity(Record):
    """What the weights depend on."""

    task: Text
    options: dict[str, JsonValue]
    model: ModelName
    origin: dict[str, JsonValue]
    """What the model was before: where it comes from and how it was loaded."""
    lessons: Count
    data: Hash
    """Of all prompts and answers as this model reads them."""
    code: Hash


class TrainRecord(Record):
    """train.json."""

    training: TrainIdentity
    too_long: Count
    """Prompts that were left out, since the model cannot read so many tokens."""
    steps: Count
    parameters: Count
    history: list[Call]
    finished: Text | None = None
    """When the model was written; None while it is trained."""
    seconds: dict[Text, Metric] = Field(default_factory=dict)
    """Of the call that finished: wall-clock and processor time."""
    metrics: dict[Text, dict[Text, Metric]] = Field(default_factory=dict)
    """By held-out split."""


def training_of(model: str) -> TrainRecord | None:
    """The record of a model that `interp train` made; None of any other, or of an unfinished one.

    A report does not fail for what is in the folder of another program.

    Args:
        model: the name that the model was loaded by.
    """
    with suppress(UserError):
        folder = organism_folder(model) if model.startswith(PREFIX) else Path(model)
        if is_folder(str(folder)):
            record = read_record(inside(folder, RECORD), TrainRecord)
            return record if record is not None and record.finished else None
    return None


def check_same_training(folder: Path, earlier: TrainIdentity, now: TrainIdentity) -> None:
    """Check that a run is the one that a folder holds.

    Raises:
        UserError: it is another one.
    """
    for name in dict.fromkeys([*earlier.options, *now.options]):
        there, here = earlier.options.get(name), now.options.get(name)
        if there != here:
            raise _other(folder, flag(name), there, here)
    for key in ("task", "model", "origin", "lessons", "data", "code"):
        there, here = getattr(earlier, key), getattr(now, key)
        if there != here:
            raise _other(folder, key, *_first_difference(there, here))


def _other(folder: Path, what: str, there: object, here: object) -> UserError:
    return UserError(
        f"{folder} belongs to a different training run: its {what} is "
        f"{shortened(repr(there), 100)}, this run's is {shortened(repr(here), 100)}; repeat that "
        "run's options, or give another --out"
    )


def _first_difference(there: Any, here: Any) -> tuple[object, object]:
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys([*there, *here]):
            if there.get(key) != here.get(key):
                return {key: there.get(key)}, {key: here.get(key)}
    return there, here
