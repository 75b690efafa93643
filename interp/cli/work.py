"""`python -m interp work DIR NUMBER --call ID -- JOB`: take part in a running measurement.

Executors start this command. Only the JSON job after `--` defines the measurement, not any file in
the folder.
"""

import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from interp import texts
from interp.cli.fields import Folder, OptionsCommand
from interp.console import echo
from interp.errors import UserError
from interp.options import Flag, FromText


class WorkCommand(OptionsCommand):
    """Take part in a run or a study as one of several workers (executors start this command)."""

    EXAMPLES = ("""work runs/all 4 --call 0123456789ab -- '{"what": {...}, ...}'""",)

    folder: Folder
    """the folder of the run or study"""
    number: Annotated[int, Field(ge=0, le=texts.MOST_WORKERS), Flag("NUMBER", positional=True)]
    """number of the worker, from 0"""
    call: Annotated[str, FromText(str, "ID"), Field(pattern="^[0-9a-f]{12}$")]
    """id of the call that started the worker"""
    ranks: Annotated[int, Field(ge=1, le=texts.MOST_RANKS)] = 1
    """number of processes that hold each model together; without --rank, they are started"""
    rank: Annotated[int | None, Field(ge=0, lt=texts.MOST_RANKS)] = None
    """number of this process among them, from 0"""
    meeting: Annotated[Path | None, FromText(texts.path, "FILE")] = None
    """file through which they find each other"""
    parent: int | None = None
    """id of the process that started the worker; the worker stops when that process ends"""
    job: Annotated[str, Flag("JOB", positional=True)]
    """after --: the job, as JSON"""

    def _execute(self) -> None:
        from interp.studies.folder import runs_in

        # Workers are stopped by this signal, which what a script starts with & ignores.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.parent is not None:
            _end_with(self.parent)
        runs_in(self.folder)
        if self.ranks > 1 and self.rank is None:
            self._start_ranks()
        else:
            self._measure()

    def _start_ranks(self) -> None:
        from interp.runs.ranks import run_ranks
        from interp.runs.workers import WorkerCommand, note_problem

        command = WorkerCommand(self.folder, self.call, self.job, ranks=self.ranks)
        try:
            run_ranks(partial(command.of, self.number), self.ranks)
        except UserError as problem:
            note_problem(self.folder, self.call, self.number, str(problem))
            raise

    def _measure(self) -> None:
        from interp.jobs import Job
        from interp.runs.execute import take_part
        from interp.runs.ranks import LOST
        from interp.runs.together import LostRankError, joined

        job = Job.of_json(self.job)
        if self.rank is None or self.meeting is None:
            plan = replace(job.plan(self.folder), call=self.call)
            take_part(plan, self.number)
            return
        try:
            with joined(self.rank, job.loading, self.meeting) as ranks:
                plan = replace(job.plan(self.folder), call=self.call)
                take_part(plan, self.number, ranks)
        except LostRankError as error:
            echo(f"error: {error}")
            raise SystemExit(LOST) from error


def _end_with(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
