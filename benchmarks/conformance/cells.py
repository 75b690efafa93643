"""Cells of the table: a library, a claim and a type, measured and stored as JSON lines."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks.conformance.claims import CLAIMS, Case, Finding, planted
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


@dataclass(frozen=True, slots=True)
class Cell:
    """One computation, its date and the versions with which it was done."""

    library: str
    claim: str
    type: str
    outcome: str
    deviation: float | None
    tolerance: float | None
    about: str
    versions: dict[str, str]
    date: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What the cell is about."""
        return self.library, self.claim, self.type

    @property
    def command(self) -> str:
        """What shows this cell alone."""
        return (
            f"python -m benchmarks.conformance --library {self.library} --claim {self.claim} "
            f"--type {self.type}"
        )


def measured(
    library: str, types: Sequence[str], names: Sequence[str], *, control: bool = False
) -> Iterator[Cell]:
    """The cells of one library; with `control`, of its numbers taken from wrong places."""
    try:
        found = adapter(library)
        made = displaced(found) if control else found
    except Exception as error:  # whatever it is, the library cannot be used here
        packages = ("torch", "transformers")
        empty = Cell(
            library, "", "", ABSENT, None, None, _told(error), _versions(packages), _today()
        )
        yield from (
            replace(empty, type=t, claim=name) for t in types for name in names if _fits(t, name)
        )
        return
    versions = _versions(("torch", "transformers", *found.packages))
    for type_ in types:
        chosen = [name for name in names if _fits(type_, name)]
        for name, outcome, finding, about in _of_type(made, type_, chosen):
            off, allowed = (finding.deviation, finding.tolerance) if finding else (None, None)
            yield Cell(library, name, type_, outcome, off, allowed, about, versions, _today())


def _fits(type_: str, name: str) -> bool:
    return (type_ == ORGANISMS) == (name == PLANTED)


def _of_type(
    made: type[Library], type_: str, names: Sequence[str]
) -> Iterator[tuple[str, str, Finding | None, str]]:
    case: Case | Exception | None = None
    for name in names:
        if name not in made.claims:
            yield name, UNCLAIMED, None, ""
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if type_ == ORGANISMS:
                    finding: Finding | None = planted(made)
                else:
                    case = case or _case(made, type_)
                    if isinstance(case, Exception):
                        raise case
                    finding = CLAIMS[name](case)
        except Exception as error:  # what a library raises is the cell's content
            case = case or error  # one that cannot take the model need not be asked again
            yield name, RAISES, None, _told(error)
            continue
        outcome = UNCLAIMED if finding is None else YES if finding.holds else NO
        yield name, outcome, finding, finding.about if finding else ""


def _case(made: type[Library], type_: str) -> Case:
    def own(dtype: torch.dtype = torch.float32) -> Subject:
        found = subject(type_, dtype)
        first = found.options[0]
        return replace(found, options=(first, None)) if made.one_column else found

    truths = [Truth(own(dtype), PARTS[type_]) for dtype in (torch.float32, torch.float64)]
    return Case(made(own()), *truths)


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _today() -> str:
    return str(date.today())


def stored(file: Path) -> dict[tuple[str, str, str], Cell]:
    """The cells of a file, the latest of each."""
    if not file.is_file():
        return {}
    cells = [Cell(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    return {cell.key: cell for cell in cells}


def append(file: Path, cell: Cell) -> None:
    """Add a cell to a file."""
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(asdict(cell)) + "\n")
