"""A worker of which a test says what it does: it runs the file work.py of its run folder."""

import sys

from interp.runs import slurm
from interp.runs.workers import WorkerCommand


class StandIn(slurm.WorkerJob):
    def __call__(self) -> None:
        self.command = _Script(self.command.folder, self.command.call, ())
        super().__call__()


class _Script(WorkerCommand):
    def of(self, number: int, *options: str) -> list[str]:
        return [sys.executable, str(self.folder / "work.py"), str(number)]
