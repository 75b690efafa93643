"""What the SLURM executor does before and beside a server; tests/slurm has it on a real one."""

import importlib
import subprocess
import sys

import pytest

from interp.errors import UserError

pytest.importorskip("submitit", reason="the extra cluster is not installed")

from interp.runs import slurm
from interp.runs.options import ExecutionOptions
from interp.runs.workers import WorkerCommand


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Puts commands of SLURM on the path that do as the test says."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def make(name, script):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return make


def command_in(folder):
    return WorkerCommand(folder, "0123456789ab", "{}")


def test_without_submitit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    monkeypatch.delitem(sys.modules, "interp.runs.slurm")
    with pytest.raises(UserError, match=r"interp\[cluster\]"):
        importlib.import_module("interp.runs.slurm")


def test_without_slurms_commands_the_local_executor_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="--executor local"):
        slurm.start(command_in(tmp_path), ExecutionOptions())


@pytest.mark.parametrize("option", ["output", "ntasks_per_node"])
def test_options_that_would_change_what_a_worker_is_are_refused(tmp_path, command, option):
    for name in ("sbatch", "srun"):
        command(name, "exit 1")
    with pytest.raises(UserError, match=option):
        slurm.start(command_in(tmp_path), ExecutionOptions(slurm_options=(f"{option}=2",)))


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Unable to contact slurm controller (connect failure)", "Rerun the command once the"),
        ("Socket timed out on send/recv operation", "or use --executor local"),
        ("Invalid partition name specified", "change or omit an option"),
    ],
)
def test_what_sbatch_says_is_told_once_with_advice_that_fits(
    command, tmp_path, capsys, said, advice
):
    command("sbatch", f'echo "sbatch: error: {said}" >&2; exit 1')
    command("srun", "exit 0")
    with pytest.raises(UserError) as refused:
        slurm.start(command_in(tmp_path), ExecutionOptions())
    message = str(refused.value)
    assert said in message
    assert advice in message
    assert ("option" in message.replace(said, "")) == ("partition" in said)
    assert said not in capsys.readouterr().err


def test_a_state_holds_while_the_cluster_does_not_answer(command, monkeypatch):
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.0)
    queue = slurm.Queue(["7_0"])
    command("squeue", "echo 7_0 RUNNING")
    assert queue.state("7_0") == "RUNNING"
    command("squeue", "exit 1")
    assert queue.state("7_0") == "RUNNING"


def test_a_job_that_left_the_list_is_looked_up_in_the_accounts(command, monkeypatch):
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.0)
    queue = slurm.Queue(["7_0", "7_1"])
    command("squeue", "echo 7_1 RUNNING")
    command("sacct", '[ "$*" = "${*%7_0}" ] || echo CANCELLED by 1000')
    assert queue.state("7_0") == "CANCELLED"
    command("sacct", "exit 1")
    command("squeue", "exit 0")
    assert queue.state("7_1") == "FORGOTTEN"
    assert queue.state("7_0") == "CANCELLED"


def test_the_queue_is_asked_once_for_all_workers(command, tmp_path):
    queue = slurm.Queue(["7_0", "7_1"])
    command("squeue", f"echo asked >> {tmp_path}/calls; echo 7_0 RUNNING; echo 7_1 RUNNING")
    assert [queue.state("7_0"), queue.state("7_1")] == ["RUNNING", "RUNNING"]
    assert (tmp_path / "calls").read_text() == "asked\n"


def test_a_worker_that_does_not_heed_the_interruption_is_killed(monkeypatch, tmp_path):
    monkeypatch.setattr(slurm, "INTERRUPT_SECONDS", 0.2)
    heedless = "import signal, time; signal.signal(2, signal.SIG_IGN); print(); time.sleep(60)"
    job = slurm.WorkerJob(command_in(tmp_path), 3)
    with subprocess.Popen([sys.executable, "-uc", heedless], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        job._child = child
        again = job.checkpoint()
    assert child.returncode == -9
    assert (again.function.command, again.function.number) == (command_in(tmp_path), 3)
