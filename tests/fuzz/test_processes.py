"""The stand-in for Popen, used without being installed."""

import subprocess
import sys
import time

import pytest

from tests.fuzz import processes
from tests.fuzz.processes import Forked

REFUSED = [sys.executable, "-m", "interp", "status", "nowhere"]


@pytest.fixture(autouse=True)
def none_started(monkeypatch):
    monkeypatch.setattr(Forked, "started", 0)


def test_a_worker_runs_a_command_and_writes_where_it_is_told(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        worker = Forked(REFUSED, env={}, stdout=log, stderr=log, start_new_session=True)
    assert worker.wait(60) == 2
    assert worker.poll() == 2
    assert "nowhere" in (tmp_path / "log").read_text()


def test_a_worker_is_waited_for_and_ended(monkeypatch):
    monkeypatch.setattr(processes, "main", lambda argv: time.sleep(60))
    worker = Forked(REFUSED)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(0.05)
    worker.terminate()
    assert worker.wait(60) == -15
    worker.kill()  # has ended: nothing happens


def test_nothing_else_and_no_crowd_is_started(tmp_path):
    with pytest.raises(FileNotFoundError):
        Forked(["sbatch", "--version"])
    with (tmp_path / "log").open("wb") as log:
        workers = [Forked(REFUSED, stderr=log) for _ in range(processes.LIMIT)]
        with pytest.raises(BlockingIOError):
            Forked(REFUSED, stderr=log)
    assert [worker.wait(60) for worker in workers] == [2] * processes.LIMIT
