"""A worker of which a test says what it does: it runs the file work.py of its run folder."""

import sys
from pathlib import Path

from interp.runs.executors import slurm


class StandIn(slurm.WorkerJob):
    def __call__(self) -> None:
        slurm.work_command = _work_command
        super().__call__()


def _work_command(folder: Path, number: int) -> list[str]:
    return [sys.executable, str(folder / "work.py"), str(number)]
