"""`python -m interp work DIR NUMBER --call ID -- JOB`: take part in a running measurement.

Executors start this command. Only the JSON job after `--` defines the measurement, not any file in
the folder.
"""

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from interp import texts
from interp.cli.fields import Folder, OptionsCommand
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
    parent: int | None = None
    """id of the process that started the worker; the worker stops when that process ends"""
    job: Annotated[str, Flag("JOB", positional=True)]
    """after --: the job, as JSON"""

    def _execute(self) -> None:
        from interp.cli.folders import runs_in
        from interp.jobs import Job
        from interp.runs.execute import take_part

        if self.parent is not None:
            _end_with(self.parent)
        runs_in(self.folder)
        plan = Job.of_json(self.job).plan(self.folder)
        take_part(replace(plan, call=self.call), self.number)


def _end_with(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
