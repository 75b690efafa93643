"""The kinds of results, and the one that fits a measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import pandas as pd

from interp.frames.answers import Attributions, Scores
from interp.frames.patches import Patches
from interp.frames.tables import Tables
from interp.measurements.spec import Spec
from interp.measurements.specs import Attribute, Evaluate, Patch
from interp.prompts.systems import dependence_factor

Result = Scores | Attributions | Patches | Tables

_Kind = TypeVar("_Kind", Scores, Attributions, Patches)

_KINDS: dict[type[Spec], type[Scores] | type[Attributions] | type[Patches]] = {
    Evaluate: Scores,
    Attribute: Attributions,
    Patch: Patches,
}


@dataclass(frozen=True, slots=True)
class Origin:
    """What results need to know of where their prompts come from."""

    system: str
    """Name of the system."""
    ratio: tuple[str, str] | None = None
    """The two segments that it compares."""
    seed: int = 0
    """What the prompts were generated with."""


def result_of(spec: Spec, tables: Mapping[str, pd.DataFrame], origin: Origin) -> Result:
    """The tables of a measurement, and of its prompts, in the kind that fits it.

    Args:
        spec: what was measured.
        tables: by name, that of the prompts among them.
        origin: where the prompts come from.
    """
    for own, kind in _KINDS.items():
        # A measurement derived from one of these may fill tables that the kind has no place for.
        if isinstance(spec, own) and tables.keys() <= {field.name for field in fields(kind)}:
            return kind(**_held(kind, tables, origin))
    measured = {name: table for name, table in tables.items() if name != "prompts"}
    return Tables(spec, tables["prompts"], measured, origin.seed)


def made_of(kind: type[_Kind], tables: Mapping[str, pd.DataFrame], origin: Origin) -> _Kind:
    """A result of a kind, from tables by name."""
    return kind(**_held(kind, tables, origin))


def _held(
    kind: type[Scores] | type[Attributions] | type[Patches],
    tables: Mapping[str, pd.DataFrame],
    origin: Origin,
) -> dict[str, Any]:
    """What a kind of result holds."""
    about = {"ratio": origin.ratio, "cluster": dependence_factor(origin.system)}
    found: dict[str, Any] = {**tables, **about}
    return {field.name: found[field.name] for field in fields(kind) if field.name in found}
