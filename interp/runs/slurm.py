"""Workers as jobs on a SLURM cluster, submitted through submitit.

submitit writes jobs as pickles, which the nodes read, into the user's own folder, since others may
be able to write to the run folder. SLURM announces a time-out with SIGUSR2. The job then interrupts
the worker, its child, which releases its claim, and submitit requeues the job.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from interp.errors import UserError
from interp.files import is_folder, writing
from interp.runs.options import ExecutionOptions
from interp.runs.workers import WorkerCommand, end_of, interrupt

try:
    from submitit import Job, SlurmExecutor
    from submitit.core.utils import FailedJobError
    from submitit.helpers import Checkpointable, DelayedSubmission
except ImportError as error:
    raise UserError(
        "the slurm executor requires submitit; run pip install 'interp[cluster]'"
    ) from error

DEFAULT_MINUTES = 60
"""Time limit of a job unless `time` is set; the job is requeued as often as needed."""

INTERRUPT_SECONDS = 30
"""Number of seconds that a worker has to release its claim; SLURM kills a job 90 seconds after
giving notice.
"""

POLL_SECONDS = 5.0
"""Minimum number of seconds between two calls to squeue, regardless of the number of workers."""

_REQUEUES = 1_000_000
"""Largest number of times that a job is requeued; submitit requires such a limit."""

_UNREACHABLE = (
    "unable to contact|connect(ion)? (failure|refused)|timed out|could not (establish|resolve)|"
    "no route to host|communication (failure|error)"
)
"""Messages of sbatch that indicate an unreachable controller."""

_RESERVED = {"array", "error", "nodes", "ntasks", "ntasks_per_node", "open_mode", "output"}

_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "FORGOTTEN", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
"""SLURM's states for jobs that will not run again. A job on its way back to the queue is COMPLETING
or REQUEUED, and then PENDING. FORGOTTEN is our own state for jobs that neither squeue nor sacct
lists.
"""


def start(command: WorkerCommand, execution: ExecutionOptions) -> list["SlurmWorker"]:
    """Submit the workers of a run as one array of jobs.

    Args:
        command: the workers' command, in a folder on a file system that the nodes share.
        execution: the number of jobs, and sbatch's long options with underscores, such as
            gpus_per_node; an empty value stands for a flag. `setup` is a shell command that a job
            runs first.

    Raises:
        UserError: this machine lacks SLURM's commands, or an option is rejected.
    """
    if shutil.which("sbatch") is None or shutil.which("srun") is None:
        raise UserError(
            "the slurm executor requires SLURM's commands, but this machine has no sbatch or "
            "srun; run this on a machine that has them, or use --executor local"
        )
    workers = execution.workers or 1
    options = dict(option.split("=", 1) for option in execution.slurm_options)
    executor = SlurmExecutor(_private_folder(command.call), max_num_timeout=_REQUEUES)
    executor.update_parameters(array_parallelism=workers, **_parameters(options))
    absolute = replace(command, folder=command.folder.absolute())
    jobs = _submit(executor, [WorkerJob(absolute, number) for number in range(workers)])
    queue = Queue([job.job_id for job in jobs])
    return [SlurmWorker(number, job, queue) for number, job in enumerate(jobs)]


def _private_folder(call: str) -> Path:
    """A new folder for a call's jobs, to which only this user can write."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    with writing(state):
        state.mkdir(parents=True, exist_ok=True)
    for folder in (state / "interp", state / "interp" / "slurm", state / "interp" / "slurm" / call):
        with writing(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not is_folder(folder) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise UserError(
                f"{folder} belongs to another user, or others may write to it, but jobs would "
                "run its files; remove it, or set XDG_STATE_HOME to a folder of your own"
            )
    return folder


def _parameters(options: Mapping[str, str]) -> dict[str, Any]:
    """The options as parameters of submitit, which passes sbatch's own options on unchanged."""
    named = dict(options)
    if taken := _RESERVED & named.keys():
        raise UserError(
            f"the SLURM option {min(taken)} cannot be set: a worker is one task on one node, and "
            "its log is next to its job file"
        )
    setup = named.pop("setup", None)
    return {
        "job_name": "interp",
        "time": DEFAULT_MINUTES,
        "stderr_to_stdout": True,
        "setup": [setup] if setup else None,
        # Some clusters requeue jobs only on request.
        "additional_parameters": {
            "requeue": True,
            **{key: value or True for key, value in named.items()},
        },
    }


def _submit(executor: SlurmExecutor, jobs: Sequence["WorkerJob"]) -> Sequence[Job[None]]:
    # If sbatch fails, submitit prints its message and also raises it: print only on success.
    printed = StringIO()
    try:
        with redirect_stderr(printed):
            submitted = executor.submit_array(jobs)
    except (FailedJobError, OSError) as error:
        reason = str(error).strip()
        if re.search(_UNREACHABLE, reason, re.IGNORECASE):
            raise UserError(
                f"SLURM did not answer: {reason}; nothing was submitted. Rerun the command once "
                "the SLURM controller can be reached, or use --executor local"
            ) from error
        raise UserError(f"SLURM rejected the jobs: {reason}; change or omit an option") from error
    sys.stderr.write(printed.getvalue())
    return submitted


class WorkerJob(Checkpointable):
    """The content of a job: the worker's command, run until it ends or SLURM reclaims the node."""

    def __init__(self, command: WorkerCommand, number: int) -> None:
        self.command, self.number = command, number
        self._child: subprocess.Popen[bytes] | None = None

    def __call__(self) -> None:
        """Run the worker; a failure ends the job with the worker's exit status."""
        self._child = _deaf_to_announcements(self.command.of(self.number))
        # Poll instead of calling wait(), whose lock would block the signal handler `checkpoint`,
        # which also waits.
        while self._child.poll() is None:
            time.sleep(0.2)
        if status := self._child.returncode:
            sys.exit(status if status > 0 else 128 - status)

    def checkpoint(self) -> DelayedSubmission:
        """Resubmission of this job; submitit calls this on SIGUSR2, before it requeues the job."""
        if self._child is not None:
            interrupt(self._child, INTERRUPT_SECONDS)
        return DelayedSubmission(type(self)(self.command, self.number))


def _deaf_to_announcements(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a child that blocks SIGUSR2, the fatal signal that SLURM sends to a job's processes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        return subprocess.Popen(command)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})


class Queue:
    """The states of some of this user's SLURM jobs, queried at most every few seconds."""

    def __init__(self, jobs: Sequence[str]) -> None:
        self._states = dict.fromkeys(jobs, "PENDING")
        self._read_at = float("-inf")

    def state(self, job: str) -> str:
        """SLURM's name for the state of a job."""
        if time.monotonic() - self._read_at >= POLL_SECONDS:
            going = [id_ for id_, state in self._states.items() if state not in _ENDED]
            if going and (listed := _listed()) is not None:
                self._states |= {id_: listed.get(id_) or _accounted(id_) for id_ in going}
            self._read_at = time.monotonic()
        return self._states[job]


def _listed() -> dict[str, str] | None:
    """The state of each of this user's jobs; None if the cluster does not respond."""
    command = ["squeue", "--me", "--array", "--states=all", "--noheader", "--format=%i %T"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return None
    return dict(line.split() for line in answer.stdout.splitlines())


def _accounted(job: str) -> str:
    """The state of a job that squeue no longer lists, if the cluster keeps accounting records."""
    command = ["sacct", "--allocations", "--noheader", "--format=State", f"--jobs={job}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    words = answer.stdout.split()  # "CANCELLED by 1000" has three words
    return words[0] if words else "FORGOTTEN"


class SlurmWorker:
    """A worker submitted to SLURM."""

    def __init__(self, number: int, job: Job[None], queue: Queue) -> None:
        self.number, self._job, self._queue = number, job, queue

    def running(self) -> bool:
        """Whether the job is running or queued, including after a time-out or pre-emption."""
        return self._queue.state(self._job.job_id) not in _ENDED

    def problem(self) -> str | None:
        """SLURM's final state for a failed job, and the end of its log; None if it succeeded."""
        state = self._queue.state(self._job.job_id)
        if state not in _ENDED - {"COMPLETED"}:
            return None
        log = self._job.paths.stdout
        return f"SLURM job {self._job.job_id} ended as {state}; the end of {log}:\n{end_of(log)}"

    def stop(self) -> None:
        """Cancel the job, unless it has ended."""
        if self.running():
            self._job.cancel(check=False)
