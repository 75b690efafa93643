"""How many tokens fitted into a device's memory, remembered for the rest of a run."""

import json
from pathlib import Path

import torch

from interp.measurement import Measurement
from interp.runs.record import write_record

_FILE = "memory.json"


def recall_budget(folder: Path, measurement: Measurement) -> None:
    """Begin with the budget that an earlier lack of memory on such a device left."""
    tokens = _known(folder).get(_key(measurement))
    if tokens is not None:
        measurement.budget.tokens = min(measurement.budget.tokens, tokens)


def remember_budget(folder: Path, measurement: Measurement) -> None:
    """Note the budget for other workers and later calls, once it has shrunk."""
    known, tokens = _known(folder), measurement.budget.tokens
    if measurement.budget.shrunk and known.get(_key(measurement)) != tokens:
        write_record(folder / _FILE, {**known, _key(measurement): tokens})


def _known(folder: Path) -> dict[str, int]:
    try:
        known: dict[str, int] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return known


def _key(measurement: Measurement) -> str:
    device = measurement.model.device
    kind = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return f"{measurement.model.name} on {kind}"
