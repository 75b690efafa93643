"""Workers as processes on this machine, with the real command line."""

import contextlib
import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from unittest.mock import create_autospec

import pytest

from interp.runs.folder import RunFolder, problems
from interp.runs.options import ExecutionOptions
from interp.runs.workers import WorkerCommand, start_local
from tests.support.processes import child, ended, until
from tests.support.runs import run_main

COMMAND = ("evaluate", "--limit", "480", "--device", "cpu")
LOCAL = ("--executor", "local", "--workers")
LONG = ("--limit", "2400")
"""So many pairs that no worker comes to the end of them while a test waits."""


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline") / "run"
    with command(folder) as process:
        assert ended(process) == 0
    return tables(folder)


def tables(folder):
    files = [*folder.glob("*.parquet"), folder / "accuracy_table.csv"]
    assert len(files) == 4
    return {file.name: file.read_bytes() for file in files}


def command(folder, *options, command=COMMAND):
    """A command in a child that has imported everything; the workers that it starts have not."""
    return child(run_main, [*command, *options, "--out", str(folder)], folder.with_suffix(".err"))


def in_background(folder, *options):
    """The command as a script starts it with &: it ignores SIGINT, and so would its children."""
    arguments = [*COMMAND, *options, "--out", str(folder)]
    return child(_deaf, arguments, folder.with_suffix(".err"))


def _deaf(*arguments):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_main(*arguments)


def told(folder):
    return folder.with_suffix(".err").read_text()


def worker_at_work(folder):
    """The process of a worker that holds a claim."""

    def processes():
        for file in (folder / "claims").glob("*/*"):
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


@pytest.mark.slow
def test_two_workers_one_killed_leave_the_tables_of_one_process(tmp_path, inline):
    folder = tmp_path / "run"
    with command(folder, *LOCAL, "2") as process:
        os.kill(worker_at_work(folder), signal.SIGKILL)
        assert ended(process) == 0, told(folder)
    assert "SIGKILL" in told(folder)
    assert "other workers" in told(folder)
    assert tables(folder) == inline
    (call,) = json.loads((folder / "run.json").read_text())["history"]
    assert call["peak_memory_bytes"]["cpu"] > 0
    assert call["finished"]
    assert not list(folder.glob(".*"))


@pytest.mark.slow
def test_ctrl_c_stops_the_workers_and_the_command_goes_on(tmp_path, inline):
    folder = tmp_path / "run"
    with command(folder, *LOCAL, "2") as process:
        worker = worker_at_work(folder)
        start = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        assert ended(process) == 130
    assert time.monotonic() - start < 15
    assert "command" in told(folder)
    assert is_gone(worker)
    with command(folder) as process:
        assert ended(process) == 0
    # A worker that does not stop by itself is killed and leaves its claim, which is void.
    assert not list((folder / "claims").glob("*/*"))
    assert tables(folder) == inline


@pytest.mark.slow
@pytest.mark.parametrize("start", [command, in_background])
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path, start):
    folder = tmp_path / "run"
    with start(folder, *LONG, *LOCAL, "1") as process:
        worker = worker_at_work(folder)
        process.kill()
    until(lambda: is_gone(worker), seconds=10)


@pytest.mark.slow
def test_a_worker_that_cannot_begin_says_why(tmp_path):
    folder = tmp_path / "run"
    with command(folder, *LOCAL, "1", command=(*COMMAND[:-1], "xpu")) as process:
        assert ended(process) == 2
    assert "worker 0: " in told(folder)
    assert "Traceback" not in told(folder)


@pytest.mark.slow
def test_two_commands_with_workers_of_their_own_measure_their_own_models(tmp_path):
    models = ("organism/llama-shallow", "organism/phi3-shallow")
    with ExitStack() as stack:
        commands = [
            stack.enter_context(command(tmp_path / "run", "--model", model, *LOCAL, "1"))
            for model in models
        ]
        assert [ended(process, 300) for process in commands] == [0, 0], told(tmp_path / "run")
    run = RunFolder.read(tmp_path / "run")
    assert set(run.table("answers")["model"]) == set(models)
    assert list(problems(run)) == []


@pytest.mark.parametrize(
    ("workers", "ranks", "visible", "shares"),
    [
        (2, 1, "0,1", ["0", "1"]),
        (2, 1, "0,1,2,3", ["0,2", "1,3"]),
        (3, 1, "4,GPU-8a", ["4", "GPU-8a", "4"]),
        (None, 2, "0,1,2,3,4", ["0,2,4", "1,3"]),
        (3, 1, "", [2, 2, 2]),
        (2, 2, "-1", [2, 2]),
    ],
)
@pytest.mark.parametrize("asked", [None, "5"])
def test_workers_and_their_ranks_share_gpus_or_cores(
    monkeypatch, tmp_path, *, workers, ranks, visible, shares, asked
):
    """Of eight cores, unless OMP_NUM_THREADS says how many threads each process has."""
    started, process = [], create_autospec(subprocess.Popen, instance=True)

    def start(words, *, env, **_):
        started.append((words, env))
        return process

    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.delenv("OMP_NUM_THREADS")
    if asked:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    command = WorkerCommand(tmp_path, "0123456789ab", "{}", ranks=ranks)
    execution = ExecutionOptions(executor="local", workers=workers)
    start_local(command, execution)
    for (words, env), share in zip(started, shares, strict=True):
        if isinstance(share, str):
            assert env["CUDA_VISIBLE_DEVICES"] == share
        else:
            assert env["OMP_NUM_THREADS"] == (asked or str(share))
        assert ranks == 1 or words[words.index("--ranks") + 1] == str(ranks)
