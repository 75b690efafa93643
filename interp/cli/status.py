"""`python -m interp status DIR`: how far a run or a study is."""

import argparse
import math

from interp import texts

HELP = "show how far a run or a study is: done, running, failed, rate, time left"

EXAMPLES = ("status runs/all", "status runs/study")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", type=texts.path, metavar="DIR", help="what a command wrote as --out"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.cli.folders import runs_in
    from interp.console import echo
    from interp.report.console import print_table
    from interp.runs.folder import status_table
    from interp.runs.workers import worker_records

    table = status_table(runs_in(arguments.folder))
    rate = ["" if math.isnan(rate) else f"{rate:,.1f}/s" for rate in table["rate"]]
    rest = (table["prompts"] - table["done"]).tolist()
    left = list(map(_time_left, rest, table["seconds_left"].tolist()))
    shown = table.drop(columns="seconds_left").assign(rate=rate, left=left)
    print_table(shown, title="Prompts by run and model")
    for worker in worker_records(arguments.folder):
        job = f", job {worker.job}" if worker.job else ""
        where = f"worker {worker.number} (host {worker.host}{job})"
        if worker.finished is None:
            echo(f"{where}: began {worker.started}, no end reported")
        elif worker.error:
            echo(f"{where}: ended {worker.finished}, {worker.error}")


def _time_left(prompts: int, seconds: float) -> str:
    """When the rest of the prompts will be done; empty while no worker measures them."""
    from interp.console import clock

    if not prompts:
        return "done"
    return "" if math.isnan(seconds) else clock(seconds)
