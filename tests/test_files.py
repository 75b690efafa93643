import errno
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from interp.errors import UserError
from interp.files import (
    has_ended,
    locked,
    make_folder,
    process_space,
    remove_own,
    remove_plain,
    remove_unfinished_folder,
    write_whole,
)
from tests.support.processes import child, ended, until
from tests.support.runs import count_up


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("old")

    def torn(path):
        path.write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(UserError, match=r"table\.csv: .*space left on device"):
        write_whole(file, torn)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    write_whole(file, lambda path: path.write_text("new"))
    assert file.read_text() == "new"


def test_a_made_folder_is_returned_and_a_link_on_its_way_is_refused(tmp_path):
    made = make_folder(tmp_path, "shards", "model")
    assert made == tmp_path / "shards" / "model"
    assert made.is_dir()
    (tmp_path / "door").symlink_to(made)
    with pytest.raises(UserError, match="door"):
        make_folder(tmp_path, "door", "inner")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_the_first_of_two_gets_a_free_name(tmp_path, monkeypatch, links):
    def refused(*_):
        raise OSError(errno.EPERM, "operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    file = tmp_path / "claim"
    for text, written in (("first", True), ("second", False)):
        found = write_whole(file, partial(Path.write_text, data=text), replacing=False)
        assert found is written
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]


def test_a_killed_process_has_ended_before_its_parent_asks_for_it():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not has_ended(process_space(), process.pid)
        process.kill()
        until(lambda: has_ended(process_space(), process.pid))
        assert process.returncode is None
    assert has_ended(process_space(), process.pid)
    assert not has_ended("elsewhere", process.pid)


def test_a_folders_links_and_folders_stay_when_its_files_are_removed(tmp_path):
    folder, target = tmp_path / "folder", tmp_path / "target"
    (folder / "inner").mkdir(parents=True)
    target.write_text("kept")
    (folder / "plain").write_text("")
    (folder / "link").symlink_to(target)
    remove_plain(folder, ["plain", "link", "inner", "missing"])
    assert sorted(file.name for file in folder.iterdir()) == ["inner", "link"]
    assert target.read_text() == "kept"
    (tmp_path / "door").symlink_to(folder)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        remove_plain(tmp_path / "door", ["link"])


def test_of_a_folder_that_holds_folders_nothing_but_its_files_is_removed(tmp_path):
    (tmp_path / "own" / "inner").mkdir(parents=True)
    (tmp_path / "own" / "inner" / "kept").touch()
    with pytest.raises(OSError, match="not empty"):
        remove_own(tmp_path / "own")
    assert (tmp_path / "own" / "inner" / "kept").exists()


def test_an_unfinished_folder_goes_with_its_folders_but_with_no_deeper_ones(tmp_path):
    (tmp_path / "unfinished" / "checkpoint-5").mkdir(parents=True)
    (tmp_path / "unfinished" / "checkpoint-5" / "file").touch()
    remove_unfinished_folder(tmp_path / "unfinished")
    assert not (tmp_path / "unfinished").exists()
    deep = tmp_path / "other" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "kept").touch()
    with pytest.raises(OSError, match="not empty"):
        remove_unfinished_folder(tmp_path / "other")
    assert (deep / "kept").exists()


def test_a_lock_is_held_alone_or_shared_and_leaves_no_file(tmp_path):
    with locked(tmp_path, "record") as mine, locked(tmp_path, "record", wait=False) as too:
        assert (mine, too) == (True, False)
        with locked(tmp_path, "tables", wait=False) as another:
            assert another
    with (
        locked(tmp_path, "use", shared=True) as one,
        locked(tmp_path, "use", shared=True) as other,
        locked(tmp_path, "use", wait=False) as alone,
    ):
        assert (one, other, alone) == (True, True, False)
    with locked(tmp_path, "use", wait=False) as alone:
        assert alone
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_waited_for_and_ends_with_its_process(tmp_path):
    with child(count_up, tmp_path, 1000.0) as stuck:
        until((tmp_path / ".count.lock").exists)
        with child(count_up, tmp_path, 0.0) as other:
            time.sleep(0.3)
            assert other.is_alive()
            stuck.kill()
            assert ended(other) == 0
    assert (tmp_path / "count").read_text() == "50"
    assert [file.name for file in tmp_path.iterdir()] == ["count"]


def test_many_processes_lose_no_change(tmp_path):
    with ExitStack() as stack:
        children = [stack.enter_context(child(count_up, tmp_path, 0.0)) for _ in range(4)]
        assert [ended(process) for process in children] == [0] * 4
    assert (tmp_path / "count").read_text() == "200"
    assert [file.name for file in tmp_path.iterdir()] == ["count"]


def test_what_lies_in_the_place_of_a_lock_is_not_followed_or_removed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    (run / ".record.lock").symlink_to(outside)
    with pytest.raises(UserError, match=r"links?\b"), locked(run, "record"):
        pass
    (run / ".use.lock").mkdir()
    with pytest.raises(UserError, match="cannot write"), locked(run, "use"):
        pass
    (run / ".tables.lock").write_text("somebody's")
    with locked(run, "tables") as mine:
        assert mine
    assert (run / ".tables.lock").read_text() == "somebody's"
    assert outside.read_text() == "precious"


def test_a_file_system_without_locks_gives_every_lock(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("fcntl.flock", flock)
    with locked(tmp_path, "record") as one, locked(tmp_path, "record", wait=False) as other:
        assert one and other


def test_a_file_with_the_name_of_a_lock_that_is_not_ours_stays(tmp_path):
    for content in ("", "a user's own"):
        (tmp_path / ".record.lock").write_text(content)
        with locked(tmp_path, "record") as held:
            assert held
        assert (tmp_path / ".record.lock").read_text() == content
