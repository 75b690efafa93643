import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.files import process_space
from interp.runs import claims as claims_module
from interp.runs.claims import Claims
from tests.support.processes import child, ended
from tests.support.runs import KEYS, claim_each, die_while_claiming


@pytest.fixture
def clock(monkeypatch):
    """The monotonic clock of this process, which the test turns on."""

    class Clock:
        now = 1000.0

    monkeypatch.setattr(claims_module.time, "monotonic", lambda: Clock.now)
    return Clock


KEY = "0" * 32


def claim_of(folder):
    """A claim that a worker on another machine left."""
    (folder / KEY).write_text('{"space": "elsewhere", "process": 1, "worker": "another"}')
    return folder / KEY


def claims_in(folder, **options):
    return Claims(folder, (), **options)


def test_a_claim_is_released_even_if_ctrl_c_comes_during_the_release(tmp_path, monkeypatch):
    original, calls = claims_module.files.remove_plain, []

    def interrupted_once(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        original(*args)

    monkeypatch.setattr(claims_module.files, "remove_plain", interrupted_once)
    with pytest.raises(KeyboardInterrupt), claims_in(tmp_path).take(KEY) as mine:
        assert mine
    assert len(calls) == 2 and not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError), claims_in(tmp_path).take(KEY):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_one_worker_of_two_gets_the_shard(tmp_path):
    one, other = claims_in(tmp_path), claims_in(tmp_path)
    with one.take(KEY) as mine, other.take(KEY) as too:
        assert mine
        assert not too
        assert other.held(KEY)
        assert other.all() == [KEY]
        with other.take("1" * 32) as free:
            assert free
    assert not other.held(KEY)
    with other.take(KEY) as mine:
        assert mine
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("longest", [0.0, 1.0, 1000.0])
def test_a_claim_is_void_after_some_times_the_longest_shard(tmp_path, clock, longest):
    patience = max(claims_module.PATIENCE, claims_module.MULTIPLE * longest)
    claim_of(tmp_path)
    claims = claims_in(tmp_path, longest=longest)
    assert claims.held(KEY)
    clock.now += patience - 1
    assert claims.held(KEY)
    clock.now += 2
    assert not claims.held(KEY)
    with claims.take(KEY) as mine:
        assert mine
        assert claims_in(tmp_path).held(KEY)
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_was_taken_over_is_not_given_back_by_its_first_owner(tmp_path, clock):
    one, other = claims_in(tmp_path), claims_in(tmp_path)
    with one.take(KEY):
        assert other.held(KEY)
        clock.now += claims_module.PATIENCE + 1
        with other.take(KEY) as mine:
            assert mine
            with one.take(KEY) as again:
                assert not again
            assert claims_in(tmp_path).held(KEY)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=5))
def test_clocks_that_jump_decide_nothing(tmp_path_factory, jumps):
    """A claim with another time is another claim, whichever: an hour ahead, or a year back."""
    folder = tmp_path_factory.mktemp("claims")
    file, claims = claim_of(folder), claims_in(folder)
    with pytest.MonkeyPatch.context() as patch:
        now = [0.0]
        patch.setattr(claims_module.time, "monotonic", lambda: now[0])
        times = [file.stat().st_mtime]
        for jump in jumps:
            assert claims.held(KEY)
            now[0] += claims_module.PATIENCE - 1
            times.append(1_700_000_000.0 + jump)
            os.utime(file, (times[-1], times[-1]))
            if times[-1] == times[-2]:
                return
        assert claims.held(KEY)
        now[0] += claims_module.PATIENCE + 1
        assert not claims.held(KEY)


def test_a_process_that_dies_while_it_claims_leaves_no_claim(tmp_path):
    with child(die_while_claiming, tmp_path, KEY) as process:
        assert ended(process) == -signal.SIGKILL
    claims = claims_in(tmp_path)
    assert list(tmp_path.iterdir())
    with claims.take(KEY) as mine:
        assert mine
    claims.clear()
    assert not tmp_path.exists()


@pytest.mark.parametrize("content", ["", "{", '{"worker": 7}'])
def test_a_claim_that_is_being_written_or_damaged_is_believed_for_a_while(tmp_path, clock, content):
    (tmp_path / KEY).write_text(content)
    claims = claims_in(tmp_path)
    assert claims.held(KEY)
    clock.now += claims_module.PATIENCE + 1
    with claims.take(KEY) as mine:
        assert mine


def test_many_workers_share_what_a_dead_one_had_claimed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        gone = {"space": process_space(), "process": process.pid, "worker": "gone"}
    for shard in KEYS:
        (tmp_path / shard).write_text(json.dumps(gone))
    assert not claims_in(tmp_path).held(KEY)
    log = tmp_path.with_name("log")
    with ExitStack() as stack:
        workers = [stack.enter_context(child(claim_each, tmp_path, log)) for _ in range(4)]
        assert [ended(worker) for worker in workers] == [0] * 4
    # A shard that one has given back may be claimed once more: a worker asks whether it is done.
    assert set(log.read_text().split()) == set(KEYS)


def test_a_clear_message_where_the_claim_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"), claims_in(tmp_path / "file").take(KEY):
        pass


def test_claims_behind_a_link_are_neither_given_back_nor_removed(tmp_path):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    claims = Claims(run, ("claims", "model"))
    with claims.take(KEY) as mine:
        assert mine
        (run / "claims").rename(elsewhere)
        (run / "claims").symlink_to(elsewhere)
    assert (elsewhere / "model" / KEY).is_file()
    claims.clear()
    assert (elsewhere / "model" / KEY).is_file()


def test_only_claims_are_cleared(tmp_path):
    claims = Claims(tmp_path, ("claims",))
    with claims.take(KEY):
        (tmp_path / "claims" / "notes.txt").write_text("kept")
        claims.clear()
    assert [file.name for file in (tmp_path / "claims").iterdir()] == ["notes.txt"]
