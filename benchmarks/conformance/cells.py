"""Cells of the table: a library, a claim and a type, measured and stored as lines of a CSV file."""

import csv
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import replace
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.conformance.claims import CLAIMS, Case, planted, worst
from benchmarks.conformance.control import displaced
from benchmarks.conformance.libraries import Library, adapter
from benchmarks.conformance.truth import Truth
from benchmarks.conformance.types import ORGANISMS, PARTS, Subject, subject

PLANTED = "planted"
NAMES = (*CLAIMS, PLANTED)
TYPES = (*PARTS, ORGANISMS)

YES, NO, RAISES, UNCLAIMED, ABSENT = "yes", "no", "raises", "not claimed", "not importable"
"""What a cell says: the claim holds; it does not; the library raises an exception; it, or the type,
has no such claim; the library cannot be imported here."""


class Cell(NamedTuple):
    """One computation, as it is stored."""

    library: str
    claim: str
    type: str
    outcome: str
    deviation: str
    """How far the library is from the truth, and how far it may be; empty if nothing was found."""
    tolerance: str
    about: str
    """Where that was, or what was raised."""
    versions: str
    date: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What the cell is about."""
        return self[:3]


def measured(
    library: str, type_: str, names: Sequence[str], *, control: bool = False
) -> Iterator[Cell]:
    """The cells of a library and a type; with `control`, of numbers taken from wrong places."""
    made: type[Library] | None = None
    case: Case | None = None
    for name in names:
        if (type_ == ORGANISMS) != (name == PLANTED):
            continue
        finding, about, outcome, numbers = None, "", UNCLAIMED, ("", "")
        try:
            with redirect_stderr(StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = made or (displaced(adapter(library)) if control else adapter(library))
                if name in made.claims and type_ == ORGANISMS:
                    finding = worst(planted(made))
                elif name in made.claims:
                    case = case or _case(made, type_)
                    finding = worst(CLAIMS[name](case))
        except Exception as error:  # what a library raises is the cell's content
            outcome = ABSENT if made is None else RAISES
            last = str(error).strip().splitlines()[-1:]  # some quote a whole traceback
            about = ": ".join([type(error).__name__, *(line[:200] for line in last)])
        if finding is not None:
            outcome, about = YES if finding.holds else NO, finding.about
            numbers = f"{finding.deviation:.3g}", f"{finding.tolerance:.3g}"
        versions = _versions(("torch", "transformers", *(made.packages if made else ())))
        yield Cell(library, name, type_, outcome, *numbers, about, versions, str(date.today()))


def _case(made: type[Library], type_: str) -> Case:
    def own(dtype: torch.dtype = torch.float32) -> Subject:
        found = subject(type_, dtype)
        return replace(found, options=(found.options[0], None)) if made.one_column else found

    truths = [Truth(own(dtype), PARTS[type_]) for dtype in (torch.float32, torch.float64)]
    return Case(made(own()), *truths)


def _versions(packages: Sequence[str]) -> str:
    found = []
    for name in packages:
        with suppress(PackageNotFoundError):
            found.append(f"{name}=={version(name)}")
    return " ".join(found)


def stored(file: Path) -> dict[tuple[str, str, str], Cell]:
    """The cells of a file, the latest of each."""
    if not file.is_file():
        return {}
    with file.open(encoding="utf-8", newline="") as opened:
        cells = [Cell(*row[: len(Cell._fields)]) for row in list(csv.reader(opened))[1:]]
    return {cell.key: cell for cell in cells}


def append(file: Path, cell: Cell) -> None:
    """Add a cell to a file, with the command that shows it alone."""
    is_new = not file.is_file()
    with file.open("a", encoding="utf-8", newline="") as opened:
        lines = csv.writer(opened, lineterminator="\n")
        if is_new:
            lines.writerow([*Cell._fields, "command"])
        options = [f"--{name} {own}" for name, own in zip(Cell._fields, cell.key, strict=False)]
        lines.writerow([*cell, " ".join(["python -m benchmarks.conformance", *options])])


def table_of(cells: Collection[Cell]) -> str:
    """A row for each library and a column for each claim: in how many types it holds.

    A cell has the number of types in which the claim holds, of those in which it could be asked,
    and behind it in how many it does not, or the library raises an exception.
    """
    rows = [["library", *NAMES], ["---"] * (len(NAMES) + 1)]
    for library in dict.fromkeys(cell.library for cell in cells):
        mine = [cell for cell in cells if cell.library == library and cell.outcome != UNCLAIMED]
        outcomes = ([cell.outcome for cell in mine if cell.claim == name] for name in NAMES)
        rows.append([library, *map(_counts, outcomes)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _counts(asked: list[str]) -> str:
    if set(asked) <= {ABSENT}:
        return ABSENT if asked else ""
    text = f"{asked.count(YES)} of {len(asked)}"
    parts = [f"**{asked.count(NO)} no**"] if NO in asked else []
    parts += [f"{asked.count(RAISES)} raise"] if RAISES in asked else []
    return ", ".join([text, *parts])
