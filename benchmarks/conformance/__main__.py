"""Libraries held to the truth: each cell is a library, a claim and a type of model.

    python -m benchmarks.conformance [--library L] [--claim C] [--type T]

Every cell is computed that the file does not have with the versions installed here, and printed.
With all three, one cell is computed again and nothing is stored. `--control` takes every number
from a wrong place: no cell may say yes. `--table` prints the table of the file, as the page has it.
"""

import argparse
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Collection
from contextlib import redirect_stderr
from datetime import date
from functools import lru_cache
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch

from benchmarks.conformance.claims import CLAIMS, Case, displaced, planted, worst
from benchmarks.conformance.libraries import PACKAGED, Library, adapter, adapters
from benchmarks.conformance.truth import Truth
from benchmarks.conformance.types import ORGANISMS, PARTS, subject

FILE = Path(__file__).parents[2] / "docs" / "conformance" / "cells.csv"

PLANTED = "planted"
NAMES = (*CLAIMS, PLANTED)

YES, NO, RAISES, UNCLAIMED, ABSENT = "yes", "no", "raises", "not claimed", "not importable"
"""What a cell says: the claim holds; it does not; the library raises an exception; it, or the type,
has no such claim; the library cannot be imported here."""
_PLACE = re.compile(r"(?<![\w.:/])(/[\w.+-]+)+/")  # a folder of this machine, no page's address


class Cell(NamedTuple):
    """One computation, as it is stored."""

    library: str
    claim: str
    type: str
    outcome: str
    deviation: str
    tolerance: str
    """How far the library is from the truth, and may be; empty if nothing was found."""
    about: str
    """Where that was, or what was raised."""
    versions: str
    date: str


def measured(library: str, name: str, type_: str, *, control: bool = False) -> Cell:
    """The cell of a library, a claim and a type; `control` takes numbers from wrong places."""
    made, finding, outcome, about, numbers = None, None, UNCLAIMED, "", ("", "")
    try:
        with redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = displaced(adapter(library)) if control else adapter(library)
            if name in made.claims:
                asked = planted(made) if name == PLANTED else CLAIMS[name](_case(made, type_))
                finding = worst(asked)
    except Exception as error:  # what a library raises is the cell's content
        outcome = RAISES if made else ABSENT if name in PACKAGED.get(library, NAMES) else UNCLAIMED
        text = _PLACE.sub("", str(error)).strip()  # some are a whole traceback
        about = ": ".join([type(error).__name__, *(line[:200] for line in text.splitlines()[-1:])])
    if finding is not None:
        outcome, about = YES if finding.holds else NO, finding.about
        numbers = f"{finding.deviation:.3g}", f"{finding.tolerance:.3g}"
    packages = ["torch", "transformers", *(made.packages if made else ())]
    versions = " ".join(f"{own}=={version(own)}" for own in packages)
    return Cell(library, name, type_, outcome, *numbers, about, versions, str(date.today()))


@lru_cache(1)
def _case(made: type[Library], type_: str) -> Case:
    own, exact = subject(type_), subject(type_, torch.float64)
    if made.one_column:
        own.options = exact.options = own.options[0], None
    other, base, *_ = own.prompts
    return Case(made(own), Truth(exact, PARTS[type_]), base, other)


def stored(file: Path) -> dict[tuple[str, str, str], Cell]:
    """The cells of a file, the latest of each."""
    if not file.is_file():
        return {}
    rows = pd.read_csv(file, dtype=str, keep_default_na=False)[[*Cell._fields]]
    return {cell[:3]: cell for cell in (Cell(*row) for row in rows.itertuples(index=False))}


def append(file: Path, cell: Cell) -> None:
    """Add a cell to a file, with the command that shows it alone."""
    options = " ".join(f"--{name} {own}" for name, own in zip(Cell._fields, cell[:3], strict=False))
    row = pd.DataFrame([cell]).assign(command=f"python -m benchmarks.conformance {options}")
    row.to_csv(file, mode="a", header=not file.is_file(), index=False)


def table_of(cells: Collection[Cell]) -> str:
    """A row for each library and a column for each claim: in how many of the types it holds.

    Behind it is in how many it does not, or the library raises an exception.
    """
    rows = pd.DataFrame(cells)
    asked = rows[rows["outcome"] != UNCLAIMED].groupby(["library", "claim"])["outcome"]
    table = asked.agg(_counts).unstack(fill_value="").reindex(columns=[*NAMES])
    table = table.loc[rows["library"].unique()].reset_index()
    lines = [table.columns, ["---"] * len(table.columns), *table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _counts(asked: "pd.Series[str]") -> str:
    count = Counter(asked)
    if set(count) == {ABSENT}:
        return ABSENT
    wrong = [f"**{count[NO]} no**"] * (NO in count) + [f"{count[RAISES]} raise"] * (RAISES in count)
    return ", ".join([f"{count[YES]} of {len(asked)}", *wrong])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=sorted(adapters()))
    parser.add_argument("--claim", choices=NAMES)
    parser.add_argument("--type", choices=(*PARTS, ORGANISMS))
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    known = stored(given.file)
    if given.table:
        print(table_of(known.values()))
        return
    if not given.library:  # some libraries change what others import
        again = [sys.executable, "-m", "benchmarks.conformance", *sys.argv[1:], "--library"]
        for library in adapters():
            subprocess.run([*again, library], check=True)
        return
    alone = given.control or (given.claim and given.type)
    claimed = [(claim, type_) for type_ in PARTS for claim in CLAIMS] + [(PLANTED, ORGANISMS)]
    for claim, type_ in claimed:
        is_asked = given.claim in (None, claim) and given.type in (None, type_)
        if is_asked and (alone or (given.library, claim, type_) not in known):
            cell = measured(given.library, claim, type_, control=given.control)
            off = f"{cell.deviation} of {cell.tolerance}" if cell.deviation else ""
            print(*(f"{own:16}" for own in (*cell[:4], off)), cell.about, flush=True)
            if not alone:
                append(given.file, cell)


if __name__ == "__main__":
    main()
