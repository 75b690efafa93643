"""Workers: the command that starts them, local workers, and workers' records."""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from interp.errors import UserError
from interp.files import inside, make_folder, open_plain, writing
from interp.runs import records
from interp.runs.options import ExecutionOptions
from interp.runs.written import WORKERS, worker_names

INTERRUPTED = "it was interrupted"
"""The error of a worker that ended early without raising an error itself."""


@contextmanager
def recorded_worker(folder: Path, call: str, number: int, *, ranks: int = 1) -> Iterator[None]:
    """While the block runs, record this process as the worker of a call with this index."""
    file = make_folder(folder, WORKERS) / f"{call}-{number}.json"
    record = records.WorkerRecord(
        call=call,
        number=number,
        host=platform.node(),
        process=os.getpid(),
        job=records.cluster_job(),
        ranks=ranks,
        threads=_threads(),
        started=records.now(),
    )
    records.write_record(file, record)
    error: str | None = INTERRUPTED
    try:
        yield
        error = None
    except UserError as problem:
        error = str(problem)
        raise
    finally:
        ended = {
            "finished": records.now(),
            "error": error,
            "peak_memory_bytes": records.peak_memory(),
        }
        # Loading a model may set the number of threads, so the number is recorded only now.
        records.write_record(file, record.model_copy(update={**ended, "threads": _threads()}))


def note_problem(folder: Path, call: str, number: int, problem: str) -> None:
    """Write into a worker's record why it ended, which it could not know itself."""
    file = inside(folder, WORKERS, f"{call}-{number}.json")
    if record := records.read_record(file, records.WorkerRecord):
        records.write_record(file, records.updated(record, {"error": problem}))


def _threads() -> int:
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch else 0


def worker_records(folder: Path, call: str | None = None) -> list[records.WorkerRecord]:
    """The records of a call's workers, or of all workers, in starting order."""
    workers = [
        record
        for name in worker_names(folder)
        if (record := records.read_record(inside(folder, WORKERS, name), records.WorkerRecord))
    ]
    workers.sort(key=lambda record: (record.started, record.call, record.number))
    return [record for record in workers if call in (None, record.call)]


def ended_call(folder: Path, call: records.Call) -> records.Call:
    """The call with its end time and the largest peak memory among this process and its workers."""
    peaks = records.peak_memory()
    for record in worker_records(folder, call.id):
        for device, held in record.peak_memory_bytes.items():
            peaks[device] = max(peaks.get(device, 0), held)
    return records.updated(call, {"finished": records.now(), "peak_memory_bytes": peaks})


LOG_LINES = 20
"""Number of lines shown from the log of a failed worker."""

LOG_BYTES = 2**16
"""Number of bytes at the end of a log that are searched for these lines."""


@runtime_checkable
class Worker(Protocol):
    """A worker as seen by the process that started it."""

    @property
    def number(self) -> int:
        """The worker's index, from 0, which is part of the names of its log and record."""

    def running(self) -> bool:
        """Whether the worker is running or queued."""

    def problem(self) -> str | None:
        """How the worker failed; None while it runs or if it succeeded."""

    def stop(self) -> None:
        """Stop the worker; its finished shards are kept."""


@dataclass(frozen=True)
class WorkerCommand:
    """The command line of workers.

    Workers receive their job on the command line, since others may be able to write to the folder.
    """

    folder: Path
    """Folder of the run or study."""
    call: str
    """Id of the call that starts the workers."""
    job: str
    """What the workers measure, as JSON."""
    on_gpus: bool = True
    """Whether the workers may use GPUs."""
    ranks: int = 1
    """Number of processes of each worker, which hold each model together."""

    def of(self, number: int, *options: str) -> list[str]:
        """The command line of the worker with this index, as words."""
        words = [str(self.folder), str(number), "--call", self.call, *options]
        if self.ranks > 1:
            words += ["--ranks", str(self.ranks)]
        return [sys.executable, "-m", "interp", "work", *words, "--", self.job]


def end_of(log: Path) -> str:
    """The last lines of a worker's log."""
    try:
        with open_plain(log) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - LOG_BYTES))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return "(no log file: the worker never started)"
    return "\n".join(text.splitlines()[-LOG_LINES:])


PATIENCE = 5.0
"""Number of seconds that a worker has to stop by itself."""


def start_local(command: WorkerCommand, execution: ExecutionOptions) -> list["LocalWorker"]:
    """Start workers on this machine: by default one per GPU (or its ranks' GPUs), or two.

    Each worker sees only its own GPUs, or shares a GPU if there are more workers than GPUs. Without
    GPUs, each worker is given a share of the cores. Workers end when this process ends.
    """
    gpus = _gpus() if command.on_gpus else []
    count = execution.workers or max(1, (len(gpus) or 2) // command.ranks)
    started = []
    for number in range(count):
        make_folder(command.folder, "logs")
        log = inside(command.folder, "logs", f"worker-{command.call}-{number}.log")
        with writing(log):
            stream = log.open("xb")
        with stream:
            process = subprocess.Popen(
                command.of(number, "--parent", str(os.getpid())),
                env={**os.environ, **_share(number, count, gpus, ranks=command.ranks)},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                # Ctrl-C reaches only this process, which then stops the workers.
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
        """Whether the worker is still running."""
        return self.process.poll() is None

    def problem(self) -> str | None:
        """How the worker failed; None while it runs or if it succeeded."""
        code = self.process.returncode
        if not code:
            return None
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"it {how}; the end of {self.log}:\n{end_of(self.log)}"

    def stop(self) -> None:
        """Interrupt the worker, and kill it if it does not stop."""
        interrupt(self.process, PATIENCE)


def interrupt(process: "subprocess.Popen[bytes]", patience: float) -> None:
    """Interrupt a process, and kill it if it has not ended after some seconds."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _gpus() -> list[str]:
    """The GPUs that this process may use, named as in CUDA_VISIBLE_DEVICES."""
    import torch  # this import takes a second, but `status` only reads records

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        # "-1" hides all GPUs.
        return [name for name in visible.split(",") if name not in ("", "-1")]
    return [str(index) for index in range(torch.cuda.device_count())]


def _share(number: int, workers: int, gpus: list[str], *, ranks: int = 1) -> Mapping[str, str]:
    """The environment variables that assign GPUs or cores to a worker's processes."""
    if gpus:
        mine = gpus[number::workers] or [gpus[number % len(gpus)]]
        return {"CUDA_VISIBLE_DEVICES": ",".join(mine)}
    return share_of_cores(workers * ranks)


def share_of_cores(processes: int) -> dict[str, str]:
    """The variable that gives each process a share of the cores, unless the user has set it."""
    from joblib import cpu_count  # a slow import

    threads = str(max(1, cpu_count() // processes))
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
