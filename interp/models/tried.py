"""What works on each type of model, as tried on small random models (docs/models.md).

The table is written by `make zoo`, which compares every measurement on a small model of each type
that transformers lists with plain passes of the model, hooks, and finite differences.
"""

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("tried.csv")
"""One row per type; columns are type, kind, one per measurement, and reasons."""

RIGHT, SOME, GIVEN, ABSENT, REFUSED = "yes", "part", "unjudged", "absent", "no"
"""Marks of a measurement on a type: as independent passes say; the same, but only some layers have
it; given, and there was nothing to compare it with; the type has none; refused, with a reason."""


@cache
def tried() -> Mapping[str, Mapping[str, str]]:
    """The rows of the table, by type; of a type's class that also reads images, by TYPE:images."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["type"]: row for row in csv.DictReader(file)}


def tried_on(model_type: str, class_name: str) -> Mapping[str, str] | None:
    """The marks by measurement of a type, or its class that reads images; None if not tried."""
    row = tried().get(model_type)
    if class_name.endswith("ForConditionalGeneration"):
        row = tried().get(f"{model_type}:images", row)
    if row is None:
        return None
    return {name: mark for name, mark in row.items() if name not in ("type", "kind", "reasons")}
