"""Workers as processes on this machine, each with its share of the GPUs or of the cores."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from joblib import cpu_count

from interp.files import make_folder, writing
from interp.runs.executors import WorkerCommand, end_of
from interp.runs.workers import worker_log

PATIENCE = 5.0
"""Seconds that a worker gets to stop by itself."""


def start(
    command: WorkerCommand, *, workers: int | None, on_gpus: bool = True
) -> list["LocalWorker"]:
    """Start workers on a run or a study: one for each GPU, or two by default.

    A worker sees its GPUs alone; several share one where there are more workers than GPUs. Without
    GPUs, or where they are not wanted, it has its share of the cores. Workers end when this process
    does.

    Raises:
        UserError: the logs cannot be written.
    """
    gpus = _gpus() if on_gpus else []
    count = workers or len(gpus) or 2
    started = []
    for number in range(count):
        make_folder(command.folder, "logs")
        log = worker_log(command.folder, command.call, number)
        with writing(log):
            stream = log.open("xb")
        with stream:
            process = subprocess.Popen(
                command.of(number, "--parent", str(os.getpid())),
                env={**os.environ, **_share(number, count, gpus)},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                # Ctrl-C reaches this process alone, which then stops the workers.
                start_new_session=True,
            )
        started.append(LocalWorker(number, process, log))
    return started


@dataclass(frozen=True)
class LocalWorker:
    """A worker process."""

    number: int
    process: "subprocess.Popen[bytes]"
    log: Path

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def problem(self) -> str | None:
        """How it failed, once it has ended; None if it ended well."""
        code = self.process.returncode
        if not code:
            return None
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"it {how}; the end of {self.log}:\n{end_of(self.log)}"

    def stop(self) -> None:
        """Interrupt it, and end it if it does not heed that."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _gpus() -> list[str]:
    """The names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        # "-1" hides all of them.
        return [name for name in visible.split(",") if name not in ("", "-1")]
    return [str(index) for index in range(torch.cuda.device_count())]


def _share(number: int, workers: int, gpus: list[str]) -> Mapping[str, str]:
    """What a worker's environment says of its GPUs or its cores."""
    if gpus:
        mine = gpus[number::workers] or [gpus[number % len(gpus)]]
        return {"CUDA_VISIBLE_DEVICES": ",".join(mine)}
    threads = max(1, cpu_count() // workers)
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
