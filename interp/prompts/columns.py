"""The columns to read from a table, and checks of the names that a file gives to its columns."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from interp.errors import shortened
from interp.lookalikes import lookalike

Cells = Mapping[str, object]
"""Value of each column: text, number, boolean or None."""


class LackingColumnsError(ValueError):
    """A file lacks columns that it must have."""


class Columns(NamedTuple):
    """The columns to read from each file; for the fields, see `interp.prompts.files.read_rows`."""

    required: Sequence[str]
    optional: Sequence[str]
    unnamed: Sequence[str]
    others: bool
    nested: bool

    def of(self, found: Sequence[str]) -> list[str]:
        """The columns to read from a file, given the columns that it has.

        Raises:
            LackingColumnsError: a required column is missing.
            ValueError: a column to read is there twice.
        """
        counts = Counter(found)
        read = dict.fromkeys([*self.required, *(name for name in self.optional if name in counts)])
        if missing := [name for name in read if name not in counts]:
            raise LackingColumnsError(
                f"it lacks the columns {', '.join(missing)}; it has "
                f"{shortened(', '.join(found), 100) or 'none'}{_why_lacking(found, missing)}"
            )
        chosen = counts if self.others else read
        check_unique({name: counts[name] for name in chosen})
        return list(chosen)


def check_unique(counts: Mapping[str, int]) -> None:
    """Reject a column that occurs more than once.

    Raises:
        ValueError: a column occurs more than once.
    """
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise ValueError(
            f"it has the column {shortened(repeated[0], 60)} twice; expected unique names"
        )


def _why_lacking(found: Sequence[str], missing: Iterable[str]) -> str:
    """A hint about why columns are missing, if the existing names suggest one."""
    wanted = set(missing)
    if len(found) == 1 and "|" in found[0]:
        return ". Its cells seem to be separated by another character; expected commas"
    if wanted <= {name.strip() for name in found}:
        return ". Some names have spaces around them; remove the spaces"
    if wanted <= {name.lower() for name in found}:
        return ". Write the names in lower case"
    for name in found:
        if alike := lookalike(name, wanted):
            return f". Rename {shortened(name, 60)!r}: {alike}"
    return ""
