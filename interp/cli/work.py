"""`python -m interp work DIR NUMBER --call ID -- JOB`: take part in a run that is under way.

Executors start this command. Only the job after `--`, as JSON, says what it measures; no file in
the folder does.
"""

import argparse
import os
import re
import signal
import threading
import time
from dataclasses import replace

from interp import texts
from interp.errors import UserError

HELP = "take part, as one worker of several, in a run or a study (executors start this)"

EXAMPLES = ("""work runs/all 4 --call 0123456789ab -- '{"what": {...}, ...}'""",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", type=texts.path, metavar="DIR", help="the folder of the run or study"
    )
    parser.add_argument(
        "number",
        type=texts.whole_number(0, texts.MOST_WORKERS),
        metavar="NUMBER",
        help="which worker, from 0",
    )
    parser.add_argument("--call", required=True, metavar="ID", help="which call started it")
    parser.add_argument(
        "--parent", type=int, metavar="PID", help="end when this process no longer is the parent"
    )
    parser.add_argument("job", metavar="JOB", help="after --: what is measured, as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: no job was given, or measuring fails.
    """
    from interp.cli.folders import runs_in
    from interp.jobs import Job
    from interp.runs.execute import take_part

    if not re.fullmatch("[0-9a-f]{12}", arguments.call):
        raise UserError(f"{arguments.call!r} is no id of a call")
    # SLURM ends jobs this way; claims are given back, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.parent is not None:
        _end_with(arguments.parent)
    runs_in(arguments.folder)
    plan = Job.of_json(arguments.job).plan(arguments.folder)
    take_part(replace(plan, call=arguments.call), arguments.number)


def _end_with(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
