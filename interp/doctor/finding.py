"""A finding: what was looked at, what was found, and what follows from it."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One row of the doctor's table."""

    about: str
    """What was looked at, such as "padding token"."""
    found: str
    """What it is."""
    note: str = ""
    """What follows from it, where anything does."""


def size(count: float) -> str:
    """A number of bytes, in the largest binary unit that leaves a digit before the point."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
