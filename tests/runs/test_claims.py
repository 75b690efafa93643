import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.files import process_space
from interp.runs import claims as claims_module
from interp.runs.claims import Claims
from tests.support.processes import child, ended
from tests.support.runs import KEYS, claim_each


@pytest.fixture
def clock(monkeypatch):
    """The monotonic clock of this process, which the test turns on."""

    class Clock:
        now = 1000.0

    monkeypatch.setattr(claims_module.time, "monotonic", lambda: Clock.now)
    return Clock


OWNER = {"host": "somewhere", "job": None, "worker": "another"}


def claim_of(folder, *, space="elsewhere", process=1, generation=1):
    """A claim that a worker on another machine left."""
    folder.mkdir(exist_ok=True)
    file = folder / f"shard.{generation}"
    file.write_text(json.dumps({**OWNER, "space": space, "process": process}))
    return file


def ended_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_one_worker_of_two_gets_the_shard(tmp_path):
    one, other = Claims(tmp_path), Claims(tmp_path)
    with one.take("shard") as mine, other.take("shard") as too:
        assert mine
        assert not too
        assert other.held("shard")
        assert list(other.holders()) == ["shard"]
        assert other.holders()["shard"].process == os.getpid()
        with other.take("another") as free:
            assert free
    assert not other.held("shard")
    with other.take("shard") as mine:
        assert mine
    assert list(tmp_path.iterdir()) == []


def test_a_claim_is_given_back_after_an_exception(tmp_path):
    claims = Claims(tmp_path)
    with pytest.raises(KeyboardInterrupt), claims.take("shard"):
        raise KeyboardInterrupt
    assert not claims.held("shard")


def test_a_claim_on_another_machine_expires_by_the_observers_own_clock(tmp_path, clock):
    claim_of(tmp_path)
    claims = Claims(tmp_path)
    assert claims.held("shard")
    clock.now += claims_module.EXPIRY - 1
    assert claims.held("shard")
    clock.now += 2
    assert not claims.held("shard")
    with claims.take("shard") as mine:
        assert mine
        # The void claim stays; the new one is of the next generation.
        assert sorted(file.name for file in tmp_path.iterdir()) == ["shard.1", "shard.2"]
        assert Claims(tmp_path).held("shard")


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=5))
def test_clocks_that_jump_decide_nothing(tmp_path_factory, jumps):
    """A renewal is a changed time, whichever: an hour ahead, or a year back."""
    folder = tmp_path_factory.mktemp("claims")
    file, claims = claim_of(folder), Claims(folder)
    with pytest.MonkeyPatch.context() as patch:
        now = [0.0]
        patch.setattr(claims_module.time, "monotonic", lambda: now[0])
        patch.setattr(claims_module.time, "time", lambda: -1e12)
        times = [file.stat().st_mtime]
        for jump in jumps:
            assert claims.held("shard")
            now[0] += claims_module.EXPIRY - 1
            times.append(1_700_000_000.0 + jump)
            os.utime(file, (times[-1], times[-1]))
            if times[-1] == times[-2]:
                return
        assert claims.held("shard")
        now[0] += claims_module.EXPIRY + 1
        assert not claims.held("shard")


def test_the_claim_of_a_dead_process_here_is_void_at_once(tmp_path):
    claim_of(tmp_path, space=process_space(), process=ended_process())
    claims = Claims(tmp_path)
    assert claims.holders() == {}
    with claims.take("shard") as mine:
        assert mine


def test_a_claim_that_is_being_written_is_believed(tmp_path, clock):
    (tmp_path / "shard.1").write_text("")
    claims = Claims(tmp_path)
    assert claims.held("shard")
    clock.now += claims_module.EXPIRY + 1
    assert not claims.held("shard")


def test_of_many_that_see_a_claim_expire_one_gets_the_shard(tmp_path):
    for shard in KEYS:
        (tmp_path / f"{shard}.1").write_text(
            json.dumps({**OWNER, "space": process_space(), "process": ended_process()})
            if shard == KEYS[0]
            else (tmp_path / f"{KEYS[0]}.1").read_text()
        )
    log = tmp_path.with_name("log")
    with ExitStack() as stack:
        workers = [stack.enter_context(child(claim_each, tmp_path, log)) for _ in range(4)]
        assert [ended(worker) for worker in workers] == [0] * 4
    # A shard that one has given back may be claimed once more: a worker asks whether it is done.
    assert set(log.read_text().split()) == set(KEYS)


def test_a_claim_is_renewed_while_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(claims_module, "BEAT", 0.01)
    with Claims(tmp_path).take("shard"):
        file = tmp_path / "shard.1"
        os.utime(file, (0, 0))
        end = time.monotonic() + 30
        while file.stat().st_mtime == 0:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_clear_message_where_the_claim_cannot_be_written(tmp_path):
    from interp.errors import UserError

    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"), Claims(tmp_path / "file").take("shard"):
        pass


def test_claims_behind_a_link_are_not_removed(tmp_path):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    key = "0" * 32
    (elsewhere / "model").mkdir(parents=True)
    (elsewhere / "model" / f"{key}.1").write_text("somebody else's")
    run.mkdir()
    (run / "claims").symlink_to(elsewhere)
    Claims(run, ("claims", "model")).clear()
    assert (elsewhere / "model" / f"{key}.1").read_text() == "somebody else's"
    (elsewhere / "empty").mkdir()
    Claims(run, ("claims", "empty")).remove_folder()
    assert (elsewhere / "empty").is_dir()


def test_a_claim_behind_a_link_is_not_given_back(tmp_path):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    key = "0" * 32
    run.mkdir()
    with Claims(run, ("claims", "model")).take(key) as mine:
        assert mine
        (run / "claims").rename(elsewhere)
        (run / "claims").symlink_to(elsewhere)
    assert (elsewhere / "model" / f"{key}.1").is_file()


def test_only_claims_are_cleared(tmp_path):
    claims = Claims(tmp_path, ("claims",))
    with claims.take("0" * 32):
        (claims.folder / "notes.txt").write_text("kept")
        claims.clear()
    assert [file.name for file in claims.folder.iterdir()] == ["notes.txt"]
