"""A small share of the fuzzing; `make fuzz` does all of it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.fuzz.numbers import SHARES, numbers
from tests.fuzz.report import classes, table
from tests.fuzz.verdict import LONGEST_MESSAGE, ROOT, Outcome, judge

CASES = 60

RIGHT = Outcome(
    status=0,
    code=2,
    error="",
    unmade="",
    output="",
    message="error: no such thing",
    escapes="",
    touched=False,
    refused=True,
)


def test_damaged_input_gives_a_result_or_one_message(tmp_path):
    failures = tmp_path / "failures.json"
    command = [sys.executable, "-m", "tests.fuzz", "--jobs", "1", "--failures", str(failures)]
    ended = subprocess.run(
        [*command, "--cases", str(CASES), "--seed", "11"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failures.exists(), ended.stderr
    assert ended.returncode == 0, ended.stdout
    assert not json.loads(failures.read_text())["failures"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"code": 0}, "accepted"),
        ({"code": 1}, "other"),
        ({"code": None, "status": -11}, "other"),
        ({"message": "x" * (LONGEST_MESSAGE + 1)}, "other"),
        ({"unmade": "why"}, "other"),
        ({"error": "KeyError interp/x.py:1", "code": None}, "traceback"),
        ({"output": "Traceback (most recent call last)"}, "traceback"),
        ({"message": "Traceback (most recent call last)"}, "traceback"),
        ({"status": None, "code": None}, "hang"),
        ({"escapes": "os.remove '/x'\n"}, "escape"),
        ({"touched": True}, "escape"),
    ],
)
def test_what_is_judged_a_failure(change, kind):
    found = judge(replace(RIGHT, **change))
    assert found is not None
    assert found[0] == kind


def test_what_is_judged_right():
    assert judge(RIGHT) is None
    assert judge(replace(RIGHT, code=130)) is None
    assert judge(replace(RIGHT, code=0, refused=False)) is None


def test_every_target_has_its_share():
    listed = numbers(20_000)
    assert len(listed) == len(set(listed)) == 20_000
    assert {target for target, _ in numbers(1)} == set(SHARES)
    assert sum(SHARES.values()) == pytest.approx(1)


def test_the_table_counts_failures_by_target_and_kind():
    results = [
        {"target": "a", "number": 0, "failure": None, "seconds": 1.0},
        {"target": "a", "number": 1, "failure": ("hang", "x.py:1"), "seconds": 2.0},
        {"target": "b", "number": 0, "failure": ("hang", "x.py:1"), "seconds": 3.0},
    ]
    rows = [row.split() for row in table(results).splitlines()]
    assert rows[1] == ["a", "2", "1", "0", "1", "0", "0", "0", "1.50"]
    assert rows[3] == ["together", "3", "1", "0", "2", "0", "0", "0", "2.00"]
    assert classes(results).split() == ["2", "hang:", "x.py:1", "(--only", "a:1)"]
