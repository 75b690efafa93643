"""Libraries held to the truth: each cell is a library, a claim and a type of model.

    python -m benchmarks.conformance [--library L] [--claim C] [--type T]

Every cell is computed that the file does not have with the versions installed here, and printed.
With all three, one cell is computed again and nothing is stored. `--control` takes every number
from a wrong place: no cell may say yes. `--table` prints the table of the file, as the page has it.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.conformance.cells import NAMES, TYPES, append, measured, stored, table_of
from benchmarks.conformance.libraries import adapters

FILE = Path(__file__).parents[2] / "docs" / "conformance" / "cells.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=sorted(adapters()))
    parser.add_argument("--claim", choices=NAMES)
    parser.add_argument("--type", choices=TYPES)
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
    for type_ in [given.type] if given.type else TYPES:
        names = [given.claim] if given.claim else NAMES
        left = [name for name in names if alone or (given.library, name, type_) not in known]
        for cell in measured(given.library, type_, left, control=given.control):
            off = f"{cell.deviation} of {cell.tolerance}" if cell.deviation else ""
            print(*(f"{own:16}" for own in (*cell.key, cell.outcome, off)), cell.about, flush=True)
            if not alone:
                append(given.file, cell)


if __name__ == "__main__":
    main()
