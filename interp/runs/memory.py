"""How many tokens fitted into a device's memory, remembered for the rest of a run."""

from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field

from interp.errors import UserError
from interp.files import inside
from interp.measurements.core import Measurement
from interp.runs.records import Record, read_record, write_record

_FILE = "memory.json"


class Memory(Record):
    """memory.json."""

    tokens: dict[str, Annotated[int, Field(gt=0)]]
    """The budget of a batch, by model and kind of device."""


def recall_budget(folder: Path, measurement: Measurement) -> None:
    """Begin with the budget that an earlier lack of memory on such a device left."""
    tokens = _known(folder).get(_key(measurement))
    if tokens is not None:
        measurement.budget.tokens = min(measurement.budget.tokens, tokens)


def remember_budget(folder: Path, measurement: Measurement) -> None:
    """Note the budget for other workers and later calls, once it has shrunk."""
    known, tokens = _known(folder), measurement.budget.tokens
    if measurement.budget.shrunk and known.get(_key(measurement)) != tokens:
        record = Memory(tokens={**known, _key(measurement): tokens})
        write_record(inside(folder, _FILE), record)


def _known(folder: Path) -> dict[str, int]:
    try:
        record = read_record(inside(folder, _FILE), Memory)
    except UserError:
        return {}  # it only saves time: what is damaged is found out again
    return record.tokens if record else {}


def _key(measurement: Measurement) -> str:
    device = measurement.model.device
    kind = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return f"{measurement.model.name} on {kind}"
