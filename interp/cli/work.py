"""`python -m interp work DIR NUMBER --call ID -- COMMAND`: take part in a run that is under way.

Executors start it. What it measures is said by the command behind `--`, and by nothing that lies in
the folder.
"""

import argparse
import os
import re
import signal
import threading
import time

from interp.cli import values
from interp.errors import UserError

HELP = "take part, as one worker of several, in a run or a study (executors start this)"

EXAMPLES = ("work runs/all 4 --call 0123456789ab -- evaluate --limit all --out runs/all",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", type=values.path, metavar="DIR", help="the folder of the run or study"
    )
    parser.add_argument("number", type=int, metavar="NUMBER", help="which worker, from 0")
    parser.add_argument("--call", required=True, metavar="ID", help="which call started it")
    parser.add_argument(
        "--parent", type=int, metavar="PID", help="end when this process no longer is the parent"
    )
    parser.add_argument(
        "arguments", nargs="+", metavar="COMMAND", help="behind --: the command to take part in"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: a command that measures nothing, or what measuring raises.
    """
    from interp.cli import parse
    from interp.cli.folders import runs_in
    from interp.runs.plan import take_part
    from interp.runs.workers import recorded_worker

    if not re.fullmatch("[0-9a-f]{12}", arguments.call) or arguments.number < 0:
        raise UserError(f"{arguments.call!r}, {arguments.number} name no worker of a call")
    # SLURM ends jobs so; like Ctrl-C it gives claims back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.parent is not None:
        _end_with(arguments.parent)
    runs_in(arguments.folder)
    command, parsed = parse(arguments.arguments)
    if not hasattr(command, "work"):
        raise UserError(f"{parsed.command} measures nothing that a worker could take part in")
    parsed.out = arguments.folder
    work = command.work(parsed)
    with recorded_worker(arguments.folder, arguments.call, arguments.number):
        take_part(work, arguments.number, work.join)


def _end_with(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
