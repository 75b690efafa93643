"""Edge effects from a finished run of `edges`, by which circuits are chosen."""

from pathlib import Path

import pandas as pd

from interp.errors import UserError, shortened, unknown
from interp.runs.folder import RunFolder
from interp.tables import factors_of

_FILE = "edges.parquet"

_COLUMNS = ["pair_id", "method", "writer", "reader", "effect"]

_HINT = "set --edges to the folder of a finished run of interp edges"


class EdgesRun(RunFolder):
    """A finished run of `edges` with unchanged files."""

    @classmethod
    def read(cls, folder: Path) -> "EdgesRun":
        """Open the run of `edges` in a folder.

        Raises:
            UserError: the folder holds no finished run of `edges`, or its edges have changed.
        """
        try:
            run = super().read(folder)
        except UserError as error:
            raise UserError(f"{error}; {_HINT}") from error
        if run.record.run.measurement != "edges":
            raise UserError(f"{folder} is a run of {run.record.run.measurement}; {_HINT}")
        if run.record.finished is None or run.record.merged != run.mergeable():
            raise UserError(f"{folder} is not finished: rerun its command, or {_HINT}")
        if problem := run.file_problem(_FILE):
            raise UserError(f"{folder}: {problem}; rerun the command that wrote it")
        return run

    @property
    def checksum(self) -> str:
        """The checksum of the edges table."""
        return self.record.files[_FILE]

    def effects(self, model: str, *, factor: str | None = None) -> pd.DataFrame:
        """One model's edge effects on clean prompts.

        Columns are pair_id, method, writer, reader, effect and, if given, a factor of the prompts.

        Raises:
            UserError: a file has changed, the run lacks this model, or its prompts lack the factor.
        """
        chosen = [("model", "==", model), ("direction", "==", "noising")]
        parts = list(self.parts("edges", _COLUMNS, filters=chosen))
        effects: pd.DataFrame = pd.concat(parts, ignore_index=True)
        if effects.empty:
            raise UserError(
                f"{self.folder} has no noising effects of edges for {shortened(model)}; "
                f"{_HINT} on this model"
            )
        if factor is None:
            return effects
        prompts = self.table("prompts")
        if factor not in (factors := factors_of(prompts)):
            raise UserError(f"{self.folder}: {unknown('factor', factor, factors)}")
        pairs = prompts[["pair_id", factor]].drop_duplicates("pair_id")
        return effects.merge(pairs, on="pair_id", how="left")
