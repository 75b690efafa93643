"""A small share of the fuzzing, and whether it finds what is wrong; `make fuzz` does all of it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fuzz import jail
from tests.fuzz.__main__ import ROOT, SHARES, mixed, told
from tests.fuzz.guard import Escaped, Guard
from tests.fuzz.server import LONGEST_MESSAGE, judged


def fuzz(tmp_path, *options):
    failures = tmp_path / "failures.json"
    command = [sys.executable, "-m", "tests.fuzz", "--jobs", "1", "--failures", str(failures)]
    command += options
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert failures.exists(), ended.stderr
    return ended, json.loads(failures.read_text())


def test_damaged_input_gives_a_result_or_one_message(tmp_path):
    ended, found = fuzz(tmp_path, "--cases", "60", "--seed", "11")
    assert ended.returncode == 0, ended.stdout
    assert not found["failures"]


def test_a_traceback_a_hang_and_files_changed_outside_are_found(tmp_path):
    ended, found = fuzz(tmp_path, "--cases", "4", "--target", "planted")
    assert ended.returncode == 1
    kinds = {case["number"]: case["failure"] for case in found["failures"]}
    assert kinds[0] == ["traceback", "KeyError files.py:" + kinds[0][1].rpartition(":")[2]]
    assert kinds[1][0] == "hang"
    assert kinds[2] == ["escape", "open"]
    assert kinds[3] == ["escape", "the server ended over it"]
    assert "planted:3 changed what lies outside" in ended.stderr


RIGHT = {"status": 0, "code": 2, "output": "", "message": "error: x", "escapes": "", "refused": 1}


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
        ({"escapes": "os.remove '/x'\n"}, "escape"),
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


def in_child(action):
    """Run an action in a forked child, since hooks stay; what it raised, by name."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        name = "nothing"
        try:
            action()
        except BaseException as error:
            name = type(error).__name__
            if not isinstance(error, (Escaped, OSError)):
                traceback.print_exc()
        os.write(write, name.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        raised = stream.read()
    os.waitpid(child, 0)
    return raised


@pytest.fixture
def places(tmp_path):
    """A scratch folder, and one next to it that must stay as it is."""
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    for folder in (scratch, outside):
        (folder / "sub").mkdir(parents=True)
        (folder / "file").write_text("content")
        (folder / "sub" / "file").write_text("content")
    (scratch / "link").symlink_to(outside / "file")
    (scratch / "folder_link").symlink_to(outside)
    return scratch, outside


def remove_by_descriptor(folder):
    os.unlink("file", dir_fd=os.open(folder, os.O_RDONLY))


ATTEMPTS = {
    "write": lambda folder: (folder / "file").write_text("x"),
    "update": lambda folder: (folder / "file").open("r+"),
    "os.open": lambda folder: os.open(folder / "new", os.O_CREAT | os.O_WRONLY),
    "bytes": lambda folder: os.truncate(os.fsencode(folder / "file"), 0),
    "remove": lambda folder: (folder / "file").unlink(),
    "remove by descriptor": remove_by_descriptor,
    "rmtree": lambda folder: shutil.rmtree(folder / "sub", ignore_errors=True),
    "mkdir": lambda folder: (folder / "new").mkdir(),
    "rename": lambda folder: (folder / "file").rename(folder / "other"),
    "move": lambda folder: shutil.move(folder / "sub", folder / "other"),
    "hard link": lambda folder: os.link(folder / "file", folder / "new"),
    "link": lambda folder: (folder / "new").symlink_to("/"),
    "chmod": lambda folder: (folder / "file").chmod(0),
    "utime": lambda folder: os.utime(folder / "file"),
    "above": lambda folder: (folder / "sub" / ".." / "file").unlink(),
}
FORBIDDEN = {
    "through a link": lambda folder: (folder / "link").write_text("x"),
    "times through a link": lambda folder: os.utime(folder / "link"),
    "out by a folder link": lambda folder: (folder / "file").rename(folder / "folder_link" / "new"),
    "in by a folder link": lambda folder: (folder / "folder_link" / "file").rename(folder / "new"),
    "system": lambda folder: os.system("true"),
    "start": lambda folder: subprocess.run(["true"], check=False),
    "kill": lambda folder: os.kill(os.getppid(), signal.SIGTERM),
    "connect": lambda folder: socket.socket().connect(("127.0.0.1", 9)),
}


def guarded(places, attempt, folder, **options):
    def action():
        os.chdir(places[0])
        guard = Guard(places[0], **options)
        guard.asked = [places[1] / "asked"]
        guard.install()
        attempt(folder)

    return in_child(action)


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_only_the_scratch_folder_can_be_changed(attempt, places):
    scratch, outside = places
    before = snapshot(outside)
    assert guarded(places, attempt, outside) == "Escaped"
    assert guarded(places, attempt, Path("..", "outside")) == "Escaped"
    assert guarded(places, attempt, scratch / "folder_link") in ("Escaped", "OSError")
    assert snapshot(outside) == before
    assert guarded(places, attempt, scratch) == "nothing"


@pytest.mark.parametrize("attempt", FORBIDDEN.values(), ids=FORBIDDEN)
def test_no_way_leads_out(attempt, places):
    before = snapshot(places[1])
    assert guarded(places, attempt, places[0]) == "Escaped"
    assert snapshot(places[1]) == before


def test_what_is_allowed_and_what_stays_on_record(places):
    scratch, outside = places
    assert guarded(places, lambda folder: (folder / "file").read_text(), outside) == "nothing"
    assert guarded(places, lambda folder: (folder / "link").unlink(), scratch) == "nothing"
    # What the user asked for fails as on a read-only disk.
    assert guarded(places, lambda folder: folder.mkdir(), outside / "asked") == "OSError"

    def swallowed(folder):
        with suppress(Escaped):
            (folder / "file").unlink()

    read, write = os.pipe()
    assert guarded(places, swallowed, outside, log=write) == "nothing"
    assert os.read(read, 1000).decode() == f"os.remove {str(outside / 'file')!r}\n"


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


def test_the_jail_holds_against_the_c_library(places, tmp_path):
    folder = tmp_path / "jail"
    folder.mkdir()
    before = snapshot(places[1])
    command = [sys.executable, "-c", JAILED, str(folder), str(places[1])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "not allowed" in ended.stdout:
        pytest.skip("this machine allows no namespaces")
    assert ended.stdout.endswith("held\n"), ended.stderr
    refusals = {line.split()[1] for line in ended.stdout.splitlines()[:-1]}
    assert refusals <= {"EROFS", "EPERM", "EXDEV", "EACCES", "EBUSY"}
    assert snapshot(places[1]) == before
    assert not list(folder.iterdir())  # what was written went with the jail


def test_a_leaking_jail_is_noticed(tmp_path):
    with pytest.raises(RuntimeError, match="the jail leaks"):
        jail.check(tmp_path)


def snapshot(folder):
    """Names, contents and modes of everything in a folder."""
    found = {path: path.stat() for path in sorted(folder.rglob("*"))}
    return {
        path: (state.st_mode, state.st_mtime_ns, path.is_file() and path.read_bytes())
        for path, state in found.items()
    }
