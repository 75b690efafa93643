"""What any other measurement gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from matplotlib.figure import Figure

from interp.errors import UserError, unknown
from interp.frames.shared import Sized, figure_of
from interp.measurements.spec import Spec
from interp.report.html import notebook_html
from interp.report.results import Results, results_of


@dataclass(frozen=True, repr=False)
class Tables(Sized):
    """What any other measurement gives."""

    spec: Spec
    """What was measured."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    tables: Mapping[str, pd.DataFrame]
    """The measured tables, by name."""
    seed: int = 0
    """What the prompts were generated with."""

    def to_frame(self) -> pd.DataFrame:
        """The first of the tables."""
        return next(iter(self.tables.values()))

    def summary(self) -> pd.DataFrame:
        """What the command line prints first of this measurement.

        Raises:
            UserError: it makes no small tables.
        """
        if not self._results.shown:
            raise UserError(f"{self.spec.name} makes no summary; see tables")
        return self._results.shown[0][1]

    def derived(self) -> Mapping[str, pd.DataFrame]:
        """The small tables that the command line writes as CSV, by name."""
        return self._results.tables

    def plot(self) -> Figure:
        """The first figure that the command line draws of this measurement.

        Raises:
            UserError: it draws none.
        """
        if not self._results.figures:
            raise UserError(f"{self.spec.name} has no figure; see summary() and derived()")
        return figure_of(next(iter(self._results.figures.values()))())

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A measured table, or the prompts table as "prompts".

        Args:
            name: of the table.
            columns: those to take; all if not given.

        Raises:
            UserError: there is no such table.
        """
        found = {**self.tables, "prompts": self.prompts}
        if name not in found:
            raise UserError(unknown("table", name, list(found)))
        return found[name] if columns is None else found[name][list(columns)]

    def rows(self, name: str) -> pd.DataFrame:
        """The table itself, where a run folder has files."""
        return self.table(name)

    @cached_property
    def _results(self) -> Results:
        return results_of(type(self.spec), self)

    def _repr_html_(self) -> str | None:
        return notebook_html(self._results.shown) if self._results.shown else None
