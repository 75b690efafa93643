"""Workers as processes on this machine, with the real command line."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from interp.runs.workers import local
from tests.support.processes import until

COMMAND = (sys.executable, "-m", "interp", "evaluate", "--limit", "480", "--device", "cpu")


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline") / "run"
    subprocess.run([*COMMAND, "--out", str(folder)], check=True, capture_output=True)
    return tables(folder)


def tables(folder):
    files = [*folder.glob("*.parquet"), folder / "accuracy_table.csv"]
    assert len(files) == 4
    return {file.name: file.read_bytes() for file in files}


def started(folder):
    command = [*COMMAND, "--executor", "local", "--workers", "2", "--out", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def worker_at_work(folder):
    """The process of a worker that holds a claim."""

    def processes():
        for file in (folder / "claims").glob("*/*.1"):
            with contextlib.suppress(FileNotFoundError, ValueError):
                yield json.loads(file.read_text())["process"]

    found = []
    until(lambda: found or found.extend(processes()))
    return found[0]


def is_gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_two_workers_one_killed_leave_the_tables_of_one_process(tmp_path, inline):
    folder = tmp_path / "run"
    with started(folder) as process:
        os.kill(worker_at_work(folder), signal.SIGKILL)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert "it was killed by SIGKILL" in told
    assert "The others did its share." in told
    assert tables(folder) == inline
    (call,) = json.loads((folder / "run.json").read_text())["history"]
    assert call["peak_memory_bytes"]["cpu"] > 0
    assert call["finished"]


def test_ctrl_c_stops_the_workers_and_the_command_goes_on(tmp_path, inline):
    folder = tmp_path / "run"
    with started(folder) as process:
        worker = worker_at_work(folder)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert time.monotonic() - start < 15
    assert process.returncode == 130
    assert "the same command" in told
    assert is_gone(worker)
    assert not list((folder / "claims").glob("*/*"))
    with started(folder) as process:
        assert process.communicate(timeout=120) and process.returncode == 0
    assert tables(folder) == inline


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    folder = tmp_path / "run"
    with started(folder) as process:
        worker = worker_at_work(folder)
        process.kill()
        process.communicate(timeout=60)
    until(lambda: is_gone(worker))


def test_a_worker_that_cannot_begin_says_why(tmp_path):
    command = [*COMMAND[:-1], "xpu", "--executor", "local", "--workers", "1"]
    answer = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert "not all was measured. worker 0: " in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("workers", "gpus", "shares"),
    [
        (2, ["0", "1"], ["0", "1"]),
        (2, ["0", "1", "2", "3"], ["0,2", "1,3"]),
        (3, ["4", "7"], ["4", "7", "4"]),
    ],
)
def test_workers_share_out_the_gpus(workers, gpus, shares):
    found = [local._share(number, workers, gpus) for number in range(workers)]
    assert found == [{"CUDA_VISIBLE_DEVICES": share} for share in shares]


@pytest.mark.parametrize(
    ("visible", "gpus"), [("0,3", ["0", "3"]), ("", []), ("-1", []), ("GPU-8a", ["GPU-8a"])]
)
def test_gpus_are_those_that_this_process_may_use(monkeypatch, visible, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert local._gpus() == gpus


def test_workers_share_out_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(local, "cpu_count", lambda: 8)
    assert local._share(0, 3, []) == {"OMP_NUM_THREADS": "2"}
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert local._share(0, 3, []) == {"OMP_NUM_THREADS": "5"}
