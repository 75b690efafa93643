"""The results of a finished run: what a command writes as CSV, prints and draws.

A spec names the function that makes it, in a file of its own for each kind: only what is asked for
is imported, and a command that draws nothing starts without matplotlib.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pandas as pd

from interp.measurements.spec import Spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@runtime_checkable
class Measured(Protocol):
    """What was measured, in a run folder or in memory: what small tables of any prompts need."""

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A table, or some of its columns; "prompts" is the prompts table."""

    def rows(self, name: str) -> Sequence[Path] | pd.DataFrame:
        """Where the rows of a table are: files that may be large, or the table itself."""

    @property
    def seed(self) -> int:
        """What the prompts were generated with."""


@dataclass(frozen=True)
class Results:
    """The results of a finished run."""

    tables: Mapping[str, pd.DataFrame]
    """By name: a CSV file each."""
    shown: Sequence[tuple[str, pd.DataFrame]]
    """Titles and tables for the terminal."""
    summary: Mapping[str, object] = field(default_factory=dict)
    """By model: what the tables do not show, for the record."""
    figures: "Mapping[str, Callable[[], Axes]]" = field(default_factory=dict)
    """By name: what draws it."""
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    """Further files by name: what writes each, which depends on nothing but the run's shards."""


def results_of(spec: type[Spec], run: Measured) -> Results:
    """The small tables of a run, as its spec makes them; none if it makes none."""
    if not spec.results:
        return Results({}, [])
    results: Results = resolved(spec.results)(run)
    return results


def resolved(place: str) -> Callable[..., Any]:
    """The function that a spec names as "module:function"."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
