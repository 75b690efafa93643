"""The worker that starts ranks: how each of them may end."""

import os
import sys
import time

import pytest

from interp.errors import UserError
from interp.runs import ranks
from interp.runs.ranks import LOST, run_ranks

BEGIN = """
import os, signal, sys, time
from pathlib import Path
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
signal.signal(signal.SIGINT, signal.default_int_handler)  # as a worker does
rank, here = int(given["--rank"]), Path(given["--meeting"]).parent
"""


def running(script):
    """A function from options to the command line of a small program."""
    return lambda *options: [sys.executable, "-c", BEGIN + script, *options]


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(ranks, "GRACE", 1.0)
    monkeypatch.setattr(ranks, "PATIENCE", 1.0)


def test_ranks_share_a_folder_cores_and_a_parent(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("joblib.cpu_count", lambda: 9)
    monkeypatch.setenv("OUT", str(tmp_path))
    script = """
(here / f"came{rank}").touch()
while len(list(here.glob("came*"))) < 3: time.sleep(0.01)
said = os.environ["OMP_NUM_THREADS"], given["--parent"]
Path(os.environ["OUT"], str(rank)).write_text(" ".join(said))
"""
    run_ranks(running(script), 3)
    assert [tmp_path.joinpath(f"{rank}").read_text() for rank in range(3)] == [
        f"3 {os.getpid()}"
    ] * 3


def test_a_killed_rank_is_named_and_ends_the_others():
    script = """
if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""
    start = time.monotonic()
    with pytest.raises(UserError, match=r"process 1\b.*\b2\b.*SIGKILL"):
        run_ranks(running(script), 2)
    assert time.monotonic() - start < 20


def test_the_cause_is_told_and_not_its_consequences():
    script = f"""
if rank == 2: print("error: no such layer", file=sys.stderr)
sys.exit(2 if rank == 2 else {LOST})
"""
    with pytest.raises(UserError, match=r"process 2 of the 3(?s:.*)error: no such layer"):
        run_ranks(running(script), 3)


def test_rank_0_has_said_why_it_failed():
    with pytest.raises(SystemExit) as ended:
        run_ranks(running(f"sys.exit(2 if rank == 0 else {LOST})"), 2)
    assert ended.value.code == 2


def test_a_rank_that_hangs_when_rank_0_is_done_is_stopped():
    run_ranks(running("time.sleep(60 * rank)"), 2)


@pytest.mark.slow
def test_rank_0_is_interrupted_so_that_it_releases_its_claim(tmp_path, monkeypatch):
    monkeypatch.setattr(ranks, "PATIENCE", 60.0)
    monkeypatch.setenv("OUT", str(tmp_path))
    script = """
if rank == 1:
    while not (here / "began").exists(): time.sleep(0.01)
    sys.exit(5)
try:
    (here / "began").touch()
    time.sleep(60)
finally:
    Path(os.environ["OUT"], "released").touch()
"""
    with pytest.raises(UserError, match=r"process 1\b.*\b2\b.*\b5\b"):
        run_ranks(running(script), 2)
    assert (tmp_path / "released").exists()
