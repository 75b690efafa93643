"""What an attempt to measure prompts gave: rows of tables, and errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interp.tables import Row


@dataclass(frozen=True, slots=True)
class Attempt:
    """Rows of each table, in the order of the prompts, and the errors."""

    rows: dict[str, list[Row]]
    """Rows by table."""
    units: int
    """Number of attempted prompts, or pairs if pairs are measured."""
    unit: Literal["prompt_id", "pair_id"]
    """The column that has the id of a prompt, or of a pair if pairs are measured."""
    failures: Mapping[str, str]
    """The reasons why prompts or pairs have no rows, by id. Tables with one row per prompt or pair
    also store these reasons.
    """

    @property
    def errors(self) -> dict[str, str]:
        """Every error, by prompt or pair: the failures, and the errors recorded in rows."""
        found = dict(self.failures)
        for rows in self.rows.values():
            failed = [row for row in rows if row.get("error")]
            found |= {row[self.unit]: row["error"] for row in failed}
        return found
