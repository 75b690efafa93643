"""Measure members of the zoo and write one row for each: `python -m tests.zoo --types llama mamba`.

Members that the file has already are not measured again, so that a run continues where it ended.
Each group of members is measured in a process of its own, which a crash may end.
"""

import argparse
import csv
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from interp.models.tried import FILE
from tests.zoo.build import types
from tests.zoo.check import MEASUREMENTS
from tests.zoo.judge import judge
from tests.zoo.page import TITLES, page

COLUMNS = ("type", "kind", *MEASUREMENTS, "seconds", "reasons")
PUBLISHED = tuple(name for name in COLUMNS if name != "seconds")
PAGE = Path("docs/models.md")
TOGETHER = 20
"""Members that one process measures."""

LIMIT = 60
"""Seconds of CPU time for one member."""


def main() -> None:
    """Measure what is asked for and not yet in the file, and print how many got which mark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", nargs="+", default=types(), metavar="TYPE")
    parser.add_argument("--out", type=Path, default=Path("build/zoo.csv"), metavar="FILE")
    parser.add_argument("--again", action="store_true", help="measure also what the file has")
    parser.add_argument(
        "--publish", action="store_true", help="write docs/models.md and interp/models/tried.csv"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := sorted(set(asked.types) - set(types())):
        parser.error(f"unknown types: {', '.join(unknown)}")
    if asked.worker:
        work(asked.types, asked.out)
        return
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    had = [row for row in read(asked.out) if not (asked.again and row["type"] in asked.types)]
    write(asked.out, had)
    run(asked.types, asked.out)
    rows = {row["type"]: row for row in read(asked.out)}
    write(asked.out, [rows[name] for name in types() if name in rows])
    summarize([rows[name] for name in asked.types])
    if asked.publish:
        publish([rows[name] for name in types()])


def run(names: Sequence[str], out: Path) -> None:
    """Measure members in processes, until each has a row."""
    while left := [name for name in names if name not in {row["type"] for row in read(out)}]:
        group = left[:TOGETHER]
        command = [sys.executable, "-m", "tests.zoo", "--worker", "--out", str(out), "--types"]
        ended = subprocess.run([*command, *group], check=False, stderr=subprocess.DEVNULL)
        done = {row["type"] for row in read(out)}
        crashed = next((name for name in group if name not in done), None)
        if crashed is not None:
            reason = f"the process ended with code {ended.returncode}"
            append(out, {"type": crashed, "kind": "crash", "reasons": reason})


def work(names: Sequence[str], out: Path) -> None:
    """Measure members one after the other in this process."""
    signal.signal(signal.SIGPROF, _late)
    for name in names:
        signal.setitimer(signal.ITIMER_PROF, LIMIT, LIMIT / 6)
        row = judge(name)
        signal.setitimer(signal.ITIMER_PROF, 0)
        append(out, row)
        marks = " ".join(f"{key}={row[key]}" for key in MEASUREMENTS if row[key] not in ("yes", ""))
        print(f"{name} ({row['kind']}, {row['seconds']} s): {marks or row['reasons']}", flush=True)


def _late(signum: int, frame: object) -> NoReturn:
    raise TimeoutError(f"more than {LIMIT} s of CPU time for this member")


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a file; none if there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Iterable[Mapping[str, str]], columns: Sequence[str] = COLUMNS) -> None:
    """Write a file of these columns of rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def append(path: Path, row: Mapping[str, str]) -> None:
    """Add a row to a file."""
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)


def publish(rows: Sequence[dict[str, str]]) -> None:
    """Write the page, and the table that `interp doctor` reads."""
    # Those that take no text alone are no language models, and their marks say nothing.
    none = dict.fromkeys(MEASUREMENTS, "")
    shown = ({**row, **(none if row["kind"] == "not text" else {})} for row in rows)
    write(FILE, shown, PUBLISHED)
    PAGE.write_text(page(rows), encoding="utf-8")


def summarize(rows: Sequence[dict[str, str]]) -> None:
    """Print the number of members with each mark, for each measurement and kind of member."""
    for kind, count in Counter(row["kind"] for row in rows).items():
        print(f"{kind} ({count}):")
        for name in MEASUREMENTS if kind in TITLES else ():
            counts = Counter(row[name] or "not measured" for row in rows if row["kind"] == kind)
            print(f"  {name:22}", ", ".join(f"{n} {mark}" for mark, n in counts.most_common()))


if __name__ == "__main__":
    main()
