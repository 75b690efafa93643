"""The guard and the jail, before anything is tried within them."""

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
from tests.fuzz.guard import Escaped, Guard


def in_child(action):
    """Run an action in a forked child, since hooks and namespaces stay; what it raised, by name."""
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
    """A scratch folder, and one beside it that must stay as it is."""
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    for folder in (scratch, outside):
        (folder / "sub").mkdir(parents=True)
        (folder / "empty").mkdir()
        (folder / "file").write_text("content")
        (folder / "sub" / "file").write_text("content")
    (scratch / "link").symlink_to(outside / "file")
    (scratch / "folder_link").symlink_to(outside)
    (scratch / "dangling").symlink_to(outside / "new")
    return scratch, outside


def by_descriptor(call):
    """The call with a path relative to an opened folder."""

    def relative(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        call("file", dir_fd=descriptor)

    return relative


ATTEMPTS = {
    "write": lambda folder: (folder / "file").write_text("x"),
    "append": lambda folder: (folder / "file").open("ab"),
    "update": lambda folder: (folder / "file").open("r+"),
    "create": lambda folder: (folder / "new").open("x"),
    "os.open": lambda folder: os.open(folder / "new", os.O_CREAT | os.O_WRONLY),
    "bytes": lambda folder: os.truncate(os.fsencode(folder / "file"), 0),
    "remove": lambda folder: (folder / "file").unlink(),
    "remove by descriptor": by_descriptor(os.remove),
    "rmdir": lambda folder: (folder / "empty").rmdir(),
    "rmtree": lambda folder: shutil.rmtree(folder / "sub"),
    "rmtree of all": shutil.rmtree,
    "rmtree that ignores errors": lambda folder: shutil.rmtree(folder / "sub", ignore_errors=True),
    "mkdir": lambda folder: (folder / "new").mkdir(),
    "rename": lambda folder: (folder / "file").rename(folder / "other"),
    "replace": lambda folder: (folder / "file").replace(folder / "sub" / "file"),
    "move": lambda folder: shutil.move(folder / "sub", folder / "other"),
    "hard link": lambda folder: os.link(folder / "file", folder / "new"),
    "link": lambda folder: (folder / "new").symlink_to("/"),
    "truncate": lambda folder: os.truncate(folder / "file", 0),
    "chmod": lambda folder: (folder / "file").chmod(0),
    "utime": lambda folder: os.utime(folder / "file"),
    "through a folder link": lambda folder: (folder / "sub" / ".." / "file").unlink(),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_only_the_scratch_folder_can_be_changed(attempt, places):
    scratch, outside = places

    def guarded(folder):
        os.chdir(scratch)
        Guard(scratch).install()
        attempt(folder)

    before = snapshot(outside)
    assert in_child(lambda: guarded(outside)) == "Escaped"
    assert in_child(lambda: guarded(Path("..", "outside"))) == "Escaped"
    assert in_child(lambda: guarded(scratch / "folder_link")) in ("Escaped", "OSError")
    assert snapshot(outside) == before
    assert in_child(lambda: guarded(scratch)) == "nothing"


@pytest.mark.parametrize(
    "attempt",
    [
        lambda folder: (folder / "link").write_text("x"),
        lambda folder: (folder / "dangling").write_text("x"),
        lambda folder: os.truncate(folder / "link", 0),
        lambda folder: (folder / "link").chmod(0),
        lambda folder: os.utime(folder / "link"),
        lambda folder: os.link(folder / "folder_link" / "file", folder / "new"),
        lambda folder: (folder / "file").rename(folder / "folder_link" / "new"),
        lambda folder: (folder / "folder_link" / "file").rename(folder / "new"),
        lambda folder: os.system("true"),
        lambda folder: subprocess.run(["true"], check=False),
        lambda folder: os.execv("/bin/true", ["true"]),
        lambda folder: os.posix_spawn("/bin/true", ["true"], {}),
        lambda folder: os.kill(1, signal.SIGTERM),
        lambda folder: os.kill(os.getppid(), signal.SIGTERM),
        lambda folder: socket.socket().connect(("127.0.0.1", 9)),
        lambda folder: socket.socket().bind(("127.0.0.1", 0)),
    ],
)
def test_no_way_leads_out(attempt, places):
    scratch, outside = places

    def guarded():
        os.setpgid(0, 0)
        Guard(scratch).install()
        attempt(scratch)

    before = snapshot(outside)
    assert in_child(guarded) == "Escaped"
    assert snapshot(outside) == before


def test_links_themselves_may_be_removed_and_all_may_be_read(places):
    scratch, outside = places

    def guarded():
        Guard(scratch).install()
        (outside / "file").read_text()
        (scratch / "link").unlink()
        os.kill(os.getppid(), 0)
        with Path(os.devnull).open("w") as stream:
            stream.write("x")

    assert in_child(guarded) == "nothing"


def test_an_attempt_that_is_swallowed_stays_on_record(places):
    scratch, outside = places

    def guarded():
        guard = Guard(scratch, log=write)
        guard.install()
        with suppress(Escaped):
            (outside / "file").unlink()

    read, write = os.pipe()
    assert in_child(guarded) == "nothing"
    assert os.read(read, 1000).decode() == f"os.remove {str(outside / 'file')!r}\n"


def test_what_the_user_asked_for_fails_as_on_a_read_only_disk(places):
    scratch, outside = places

    def guarded(folder):
        guard = Guard(scratch)
        guard.install()
        guard.answer_as_read_only([outside / "sub"])
        (folder / "file").unlink()

    assert in_child(lambda: guarded(outside / "sub")) == "OSError"
    assert in_child(lambda: guarded(outside)) == "Escaped"
    assert (outside / "sub" / "file").exists()


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
    _, outside = places
    folder = tmp_path / "jail"
    folder.mkdir()
    before = snapshot(outside)
    ended = subprocess.run(
        [sys.executable, "-c", JAILED, str(folder), str(outside)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "not allowed" in ended.stdout:
        pytest.skip("this machine allows no namespaces")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("held\n")
    refusals = {line.split()[1] for line in ended.stdout.splitlines()[:-1]}
    assert refusals <= {"EROFS", "EPERM", "EXDEV", "EACCES", "EBUSY"}
    assert snapshot(outside) == before
    assert not list(folder.iterdir())  # what was written went with the jail


def test_a_leaking_jail_is_noticed(tmp_path):
    with pytest.raises(RuntimeError, match="the jail leaks"):
        jail.check(tmp_path)


def snapshot(folder):
    """Names, contents and modes of everything in a folder."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
    }
