"""`python -m interp work DIR NUMBER`: take part in a run or a study that is under way.

Executors start it. The folder's record holds the command line of the run; this command reads it
again, and so knows the models, the prompts and what is measured of them.
"""

import argparse
import os
import shlex
import signal
import threading
import time
from pathlib import Path

from interp.cli import values
from interp.errors import UserError

HELP = "take part, as one worker of several, in a run or a study (executors start this)"

EXAMPLES = ("work runs/all 4",)

PROGRAM = ("python", "-m", "interp")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", type=values.path, metavar="DIR", help="the folder of the run or study"
    )
    parser.add_argument("number", type=int, metavar="NUMBER", help="which worker, from 0")
    parser.add_argument(
        "--parent", type=int, metavar="PID", help="end when this process no longer is the parent"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.cli import parse
    from interp.runs.work import take_part
    from interp.runs.workers import recorded_worker

    # SLURM ends jobs so; like Ctrl-C it gives claims back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.parent is not None:
        _end_with(arguments.parent)
    command, parsed = parse(_command_line(arguments.folder))
    parsed.out = arguments.folder
    work = command.work(parsed)
    with recorded_worker(arguments.folder, arguments.number):
        take_part(work, arguments.number, work.join)


def command_of(arguments: list[str]) -> str:
    """A command line, as records hold it."""
    return shlex.join([*PROGRAM, *arguments])


def _command_line(folder: Path) -> list[str]:
    from interp import studies
    from interp.runs import folder as runs
    from interp.runs.record import read_record

    for name in (studies.RECORD, runs.RECORD):
        record = read_record(folder / name, ("command",))
        if record is not None:
            words = shlex.split(record["command"])
            if tuple(words[: len(PROGRAM)]) == PROGRAM:
                return words[len(PROGRAM) :]
            raise UserError(f"{folder} was not made by a command of interp, so none can join it")
    raise UserError(f"{folder} holds no run or study to take part in")


def _end_with(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
