"""`python -m tests.support.choose_typed RECORD`: choose the tests that `make test-types` runs.

Reads what each test entered (`checked_types.py`), and writes tests/typed.txt: repeatedly the test
that enters the most functions not yet entered, per second that it takes; then those are left out
again, the slowest first, whose functions the others enter as well. Tests of less than `LEAST`
seconds count as that long, so that one test with many functions beats many short ones.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from tests.support.functions import CHOSEN, ELSEWHERE, all_functions

LEAST = 0.5


def choose(record: dict[str, tuple[float, list[str]]], functions: set[str]) -> list[str]:
    """The ids of tests that together enter as many of the functions as all tests do."""
    left = {test: functions.intersection(entered) for test, (_, entered) in record.items()}
    chosen = []
    while any(left.values()):
        best = max(left, key=lambda test: len(left[test]) / max(record[test][0], LEAST))
        chosen.append(best)
        now = left.pop(best)
        left = {test: remaining for test, those in left.items() if (remaining := those - now)}
    times = Counter(name for test in chosen for name in functions.intersection(record[test][1]))
    needed = []
    for test in sorted(chosen, key=lambda test: -record[test][0]):
        own = functions.intersection(record[test][1])
        if all(times[name] > 1 for name in own):
            times.subtract(own)
        else:
            needed.append(test)
    return needed


def main(folder: Path) -> None:
    """Read a record and write both lists."""
    record: dict[str, tuple[float, list[str]]] = {}
    for file in sorted(folder.glob("*.json")):
        record |= json.loads(file.read_text())
    functions = all_functions()
    chosen = choose(record, functions)
    entered = {name for _, names in record.values() for name in names}
    CHOSEN.write_text("\n".join(sorted(chosen)) + "\n", encoding="utf-8")
    ELSEWHERE.write_text("\n".join(sorted(functions - entered)) + "\n", encoding="utf-8")
    seconds = sum(record[test][0] for test in chosen)
    sys.stdout.write(f"{len(chosen)} of {len(record)} tests, {seconds:.0f} s of CPU\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
