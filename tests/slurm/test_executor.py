"""The SLURM executor on a real server, with workers of which each test says what they do."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import pytest

from interp.errors import UserError
from interp.runs.options import ExecutionOptions
from interp.runs.workers import Worker, WorkerCommand

pytest.importorskip("submitit", reason="the extra cluster is not installed")

from interp.runs import slurm
from tests.slurm.stand_in import StandIn
from tests.support.processes import until

pytestmark = pytest.mark.usefixtures("slurm")

# Its first life waits until it is interrupted, killed or canceled; a second one ends at once.
WAITING = """
import os, sys, time
from pathlib import Path
from secrets import token_hex

life = Path(__file__).parent / f"life-{sys.argv[1]}"
if life.exists():
    life.write_text("second")
    sys.exit()
life.write_text(f"{os.getpid()}")
try:
    time.sleep(120)
except KeyboardInterrupt:
    print("claim given back", flush=True)
    sys.exit(130)
"""


@pytest.fixture
def start(monkeypatch, tmp_path) -> Callable[..., list[slurm.SlurmWorker]]:
    """Submits workers that run a script."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(slurm, "WorkerJob", StandIn)
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.2)

    def start_script(script: str, *, workers: int = 1, **options: str) -> list[slurm.SlurmWorker]:
        (tmp_path / "work.py").write_text(script)
        command = WorkerCommand(tmp_path, token_hex(6), "{}")
        given = tuple(f"{key}={value}" for key, value in options.items())
        return slurm.start(command, ExecutionOptions(workers=workers, slurm_options=given))

    return start_script


def ended(*workers: Worker) -> bool:
    return not any(worker.running() for worker in workers)


def lives(folder: Path, number: int) -> str:
    file = folder / f"life-{number}"
    return file.read_text() if file.exists() else ""


def job_of(worker: slurm.SlurmWorker) -> str:
    return worker._job.job_id


def log_of(folder: Path) -> str:
    (log,) = (folder / "state" / "interp" / "slurm").glob("*/*.out")
    return log.read_text()


def test_workers_run_side_by_side_and_end_well(start, tmp_path):
    meet = """
import sys, time
from pathlib import Path
from secrets import token_hex
here = Path(__file__).parent
(here / sys.argv[1]).touch()
while not ((here / "0").exists() and (here / "1").exists()):
    time.sleep(0.1)
"""
    workers = start(meet, workers=2)
    assert [worker.number for worker in workers] == [0, 1]
    assert all(isinstance(worker, Worker) for worker in workers)
    assert all(worker.running() and worker.problem() is None for worker in workers)
    until(lambda: ended(*workers))
    assert [worker.problem() for worker in workers] == [None, None]


def test_a_failure_is_told_with_the_end_of_the_log(start, tmp_path):
    (worker,) = start("import sys; print('out of luck'); sys.exit(3)")
    until(lambda: ended(worker))
    problem = worker.problem()
    assert "FAILED" in problem
    assert "out of luck" in problem
    assert "exit code 3" in problem
    assert str(tmp_path / "state" / "interp" / "slurm") in problem


def test_a_worker_is_interrupted_and_goes_on_after_a_time_out(start, tmp_path):
    # SLURM looks at its clock every 30 seconds, so that this takes so long.
    (worker,) = start(WAITING, time="1", signal="USR2@55")
    until(lambda: ended(worker))
    assert worker.problem() is None
    assert lives(tmp_path, 0) == "second"
    assert "claim given back" in log_of(tmp_path)


def test_a_worker_goes_on_after_pre_emption(start, tmp_path):
    (worker,) = start(WAITING)
    until(lambda: lives(tmp_path, 0) != "")
    subprocess.run(["scontrol", "requeue", job_of(worker)], check=True)
    until(lambda: ended(worker))
    assert worker.problem() is None
    assert lives(tmp_path, 0) == "second"


def test_one_worker_is_killed_and_the_other_goes_on(start, tmp_path):
    killed, other = start(WAITING, workers=2)
    until(lambda: lives(tmp_path, 0) != "" and lives(tmp_path, 1) != "")
    os.kill(int(lives(tmp_path, 0)), signal.SIGKILL)
    until(lambda: ended(killed))
    assert "FAILED" in killed.problem()
    assert "exit code 137" in killed.problem()
    assert other.running()
    other.stop()
    until(lambda: ended(other))
    assert "CANCELLED" in other.problem()
    other.stop()


def test_a_job_that_slurm_forgot_has_ended():
    assert slurm.Queue(["999999"]).state("999999") == "FORGOTTEN"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partition": "nowhere"}, "invalid partition"),
        ({"color": "red"}, "unrecognized option '--color=red'"),
        ({"time": "soon"}, "time"),
    ],
)
def test_a_refused_option_is_a_users_mistake(start, options, said):
    with pytest.raises(UserError, match=said):
        start("", **options)


def test_options_are_sbatchs_own(start):
    (worker,) = start(
        "import os; assert os.environ['READY'] == 'yes'",
        cpus_per_task="1",
        job_name="mine",
        exclusive="",
        setup="export READY=yes",
    )
    described = subprocess.run(
        ["scontrol", "show", "job", job_of(worker)], capture_output=True, text=True, check=True
    ).stdout
    assert "JobName=mine" in described
    assert "OverSubscribe=NO" in described
    until(lambda: ended(worker))
    assert worker.problem() is None
