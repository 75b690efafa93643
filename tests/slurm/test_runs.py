"""Whole runs on a real server: whatever befalls the workers, the tables are one process's."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from interp.runs.records import WorkerRecord
from interp.runs.workers import worker_records
from tests.support.processes import until
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

pytestmark = pytest.mark.usefixtures("slurm")

EVALUATE = [sys.executable, "-m", "interp", "evaluate", "--limit", "720", "--device", "cpu"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, bytes]:
    """What one process measures."""
    folder = tmp_path_factory.mktemp("inline")
    subprocess.run([*EVALUATE, "--out", str(folder)], check=True, capture_output=True)
    return read_tables(folder)


def read_tables(folder: Path) -> dict[str, bytes]:
    files = [*folder.glob("*.parquet"), *folder.glob("*.csv")]
    assert {file.name for file in files} >= {"answers.parquet", "accuracy_table.csv"}
    return {file.name: file.read_bytes() for file in files}


def evaluate_on_slurm(
    folder: Path,
    workers: int,
    fault: Callable[[dict[str, object]], None] | None = None,
    *options: str,
) -> str:
    """Runs to its end, with a fault for worker 0 in the midst of it; returns what was told."""
    own = ["--executor", "slurm", "--workers", str(workers), "--out", str(folder)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder.parent / "state")}
    with subprocess.Popen(
        [*EVALUATE, *own, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder.parent,
    ) as process:
        if fault:
            fault(worker_at_work(folder))
        _, told = process.communicate()
    assert process.returncode == 0, told
    return told


def worker_at_work(folder: Path) -> dict[str, object]:
    """The record of worker 0, once the first shard is done; others are not."""

    def found() -> list[WorkerRecord]:
        return [record for record in worker_records(folder) if record.number == 0]

    until(lambda: found() and list(folder.rglob("manifest.json")))
    return found()[0].model_dump()


def slurm_command(*words: str) -> Callable[[dict[str, object]], None]:
    """A fault that a command of SLURM's is for the job of the worker on record."""

    def fault(worker: dict[str, object]) -> None:
        subprocess.run([*words, str(worker["job"])], check=True)

    return fault


def kill(worker: dict[str, object]) -> None:
    os.kill(int(worker["process"]), signal.SIGKILL)


def logs(folder: Path) -> str:
    return "".join(log.read_text() for log in (folder.parent / "state").rglob("*.out"))


def test_two_workers_write_the_tables_of_one_process(tmp_path, tables):
    evaluate_on_slurm(tmp_path / "run", 2)
    assert read_tables(tmp_path / "run") == tables
    assert len(list((tmp_path / "run" / "workers").iterdir())) == 2


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        pytest.param(kill, "FAILED", id="kill"),
        pytest.param(slurm_command("scancel"), "CANCELLED", id="scancel"),
    ],
)
def test_the_others_do_the_share_of_a_lost_worker(tmp_path, tables, fault, state):
    told = evaluate_on_slurm(tmp_path / "run", 2, fault)
    assert f"ended as {state}" in told
    assert read_tables(tmp_path / "run") == tables


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(slurm_command("scancel", "--signal=USR2"), id="time-out"),
        pytest.param(slurm_command("scontrol", "requeue"), id="pre-emption"),
    ],
)
def test_a_worker_that_is_requeued_goes_on(tmp_path, tables, fault):
    evaluate_on_slurm(tmp_path / "run", 1, fault)
    assert logs(tmp_path / "run").count("Loading pickle") == 2
    assert read_tables(tmp_path / "run") == tables


def test_a_gguf_file_is_found_by_its_relative_path(tmp_path):
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    from tests.models.test_gguf import write

    write(tmp_path / "tiny.Q8_0.gguf", make_tiny("llama", byte_level()))
    model = ["--model", "tiny.Q8_0.gguf", "--limit", "24"]
    alone = [*EVALUATE, *model, "--out", str(tmp_path / "alone")]
    subprocess.run(alone, check=True, capture_output=True, cwd=tmp_path)
    evaluate_on_slurm(tmp_path / "run", 2, None, *model)
    assert read_tables(tmp_path / "run") == read_tables(tmp_path / "alone")


def test_a_model_is_spread_over_the_ranks_of_one_task(tmp_path):
    model = ["--model", "organism/llama-logic", "--limit", "24"]
    alone = [*EVALUATE, *model, "--out", str(tmp_path / "alone")]
    subprocess.run(alone, check=True, capture_output=True)
    evaluate_on_slurm(tmp_path / "run", 1, None, *model, "--tensor-parallel", "2")
    (worker,) = worker_records(tmp_path / "run")
    assert worker.ranks == 2
    expected, found = (
        pd.read_parquet(tmp_path / name / "option_probabilities.parquet")
        for name in ("alone", "run")
    )
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-5)
