"""Libraries held to the truth: each cell is a library, a claim and a type of model.

    python -m benchmarks.conformance [--library L] [--claim C] [--type T]

Every cell is computed that the file does not have with the versions installed here, and printed.
With all three, one cell is computed again and nothing is stored. `--control` takes every number
from a wrong place: no cell may say yes. `--table` prints the table of the file, as the page has it.
"""

import argparse
from pathlib import Path

import torch

from benchmarks.conformance.cells import NAMES, TYPES, append, measured, stored
from benchmarks.conformance.libraries import adapters
from benchmarks.conformance.table import csv_of, table_of

FILE = Path(__file__).parents[2] / "docs" / "conformance" / "cells.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=sorted(adapters()))
    parser.add_argument("--claim", choices=NAMES)
    parser.add_argument("--type", choices=TYPES)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    if given.table:
        print(table_of(stored(given.file).values()))
        return
    torch.set_num_threads(2)
    known = stored(given.file)
    alone = given.control or (given.library and given.claim and given.type)
    for library in [given.library] if given.library else adapters():
        names = [given.claim] if given.claim else NAMES
        for type_ in [given.type] if given.type else TYPES:
            left = [n for n in names if alone or (library, n, type_) not in known]
            for cell in measured(library, [type_], left, control=given.control) if left else ():
                off = (
                    ""
                    if cell.deviation is None
                    else f"{cell.deviation:.2g} of {cell.tolerance:.2g}"
                )
                print(
                    f"{library:17}{cell.claim:9}{type_:12}{cell.outcome:15}{off:20}{cell.about}",
                    flush=True,
                )
                if not alone:
                    append(given.file, cell)
    if not alone:
        given.file.with_suffix(".csv").write_text(csv_of(stored(given.file).values()), "utf-8")


if __name__ == "__main__":
    main()
