"""A small share of the fuzzing, and whether it finds failures; `make fuzz` does all of it."""

import json
import os
import subprocess
import sys
from random import Random

import pytest

from tests.fuzz import folders, jail
from tests.fuzz.__main__ import ROOT, SHARES, mixed, told
from tests.fuzz.damage import damage_bytes, rewrite_json
from tests.fuzz.trials import LONGEST_MESSAGE, judged


def fuzz(tmp_path, *options):
    failures = tmp_path / "failures.json"
    command = [sys.executable, "-m", "tests.fuzz", "--jobs", "1", "--failures", str(failures)]
    command += options
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "no mount namespaces" in ended.stderr:
        pytest.skip(ended.stderr)
    assert failures.exists(), ended.stderr
    return ended, json.loads(failures.read_text())


@pytest.mark.slow
def test_damaged_input_gives_a_result_or_one_message(tmp_path):
    ended, found = fuzz(tmp_path, "--cases", "40", "--seed", "11")
    assert ended.returncode == 0, ended.stdout
    assert not found["failures"]


@pytest.mark.slow
def test_a_traceback_a_hang_and_files_changed_outside_are_found(tmp_path):
    ended, found = fuzz(tmp_path, "--cases", "4", "--target", "planted")
    assert ended.returncode == 1
    kinds = {case["number"]: case["failure"] for case in found["failures"]}
    assert kinds[0] == ["traceback", "KeyError files.py:" + kinds[0][1].rpartition(":")[2]]
    assert kinds[1][0] == "hang"
    assert kinds[2] == ["escape", "a write outside was tried"]
    assert kinds[3] == ["escape", "something outside was changed"]


RIGHT = {"status": 0, "code": 2, "output": "", "message": "error: x", "refused": 1}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, None),
        ({"code": 130}, None),
        ({"code": 0, "refused": False}, None),
        ({"code": 0}, "accepted"),
        ({"code": 1}, "other"),
        ({"code": None, "status": -11}, "other"),
        ({"message": "x" * (LONGEST_MESSAGE + 1)}, "other"),
        ({"unmade": "why"}, "other"),
        ({"error": "KeyError interp/x.py:1", "code": None}, "traceback"),
        ({"output": "Traceback (most recent call last)"}, "traceback"),
        ({"status": None, "code": None}, "hang"),
        ({"message": "cannot write /x: read-only file system"}, "escape"),
        ({"message": "cannot write /x: read-only file system", "asked": True}, None),
        ({"changed": True, "asked": True}, "escape"),
    ],
)
def test_what_is_judged_a_failure(change, kind):
    found = judged({**RIGHT, **change})
    assert (found and found[0]) == kind


def test_every_target_has_its_share_and_is_counted():
    listed = mixed(20_000, SHARES)
    assert len(listed) == len(set(listed)) == 20_000
    assert {target for target, _ in mixed(1, SHARES)} == set(SHARES)
    results = [
        {"target": "a", "number": 0, "failure": None, "seconds": 1.0},
        {"target": "a", "number": 1, "failure": ("hang", "x.py:1"), "seconds": 2.0},
    ]
    rows = [row.split() for row in told(results, ["a"]).splitlines()]
    assert rows[1] == ["a", "2", "0", "1", "0", "0", "0", "1.50"]
    assert rows[3] == ["1", "hang:", "x.py:1", "(--only", "a:1)"]


@pytest.fixture
def places(tmp_path):
    """A folder, and one next to it that must stay as it is."""
    folder, outside = tmp_path / "jail", tmp_path / "outside"
    for made in (folder, outside):
        made.mkdir()
    (outside / "file").write_text("content")
    return folder, outside


@pytest.mark.parametrize("content", ['{"a": 1}', "content"])
def test_damage_leaves_the_file_outside_as_it_is(content, places):
    folder, outside = places
    (outside / "file").write_text(content)
    for seed in range(20):
        name = folder / f"{seed}.json"
        os.link(outside / "file", name)
        rewrite_json(Random(seed), name, outside)
        damage_bytes(Random(seed), name)
    assert (outside / "file").read_text() == content


def test_nothing_is_put_into_a_linked_folder_outside(places, monkeypatch):
    folder, outside = places
    (folder / "checkpoint-4").symlink_to(outside)
    monkeypatch.setattr(folders, "_PLACES", ("checkpoint-4/optimizer.pt",))
    for seed in range(5):
        folders._misplace(Random(seed), folder, outside)
    assert [file.name for file in outside.iterdir()] == ["file"]


JAILED = """
import ctypes, errno, os, sys
from pathlib import Path
from tests.fuzz import jail
scratch, outside = map(Path, sys.argv[1:])
if not jail.enter(scratch):
    print("not allowed")
    sys.exit()
(scratch / "file").write_text("content")
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, *arguments):
    assert getattr(libc, name)(*arguments) < 0, (name, arguments)
    print(name, errno.errorcode[ctypes.get_errno()])
for file in (outside / "file", Path("/etc/hostname")):
    refused("open", bytes(file), os.O_WRONLY)
    refused("unlink", bytes(file))
    refused("rename", bytes(file), bytes(scratch / "x"))
refused("mount", b"none", bytes(outside), b"tmpfs", 0, None)
refused("umount2", bytes(scratch), 0)
refused("mknod", bytes(scratch / "node"), 0o60600, os.makedev(8, 0))
assert not list(Path("/dev").glob("vd*")) and os.getpid() == 1
print("held")
"""


def test_the_jail_holds_against_the_c_library(places):
    folder, outside = places
    command = [sys.executable, "-c", JAILED, str(folder), str(outside)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "not allowed" in ended.stdout:
        pytest.skip("this machine allows no namespaces")
    assert ended.stdout.endswith("held\n"), ended.stderr
    refusals = {line.split()[1] for line in ended.stdout.splitlines()[:-1]}
    assert refusals <= {"EROFS", "EPERM", "EXDEV", "EACCES", "EBUSY"}
    assert [file.read_text() for file in outside.iterdir()] == ["content"]
    assert not list(folder.iterdir())  # what was written went with the jail


def test_a_leaking_jail_is_noticed(tmp_path):
    with pytest.raises(RuntimeError, match="the jail leaks"):
        jail.check(tmp_path)
