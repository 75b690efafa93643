"""`python -m interp patch`: what activations of each prompt's counterpart do to its answer."""

import argparse
from pathlib import Path

from interp import texts
from interp.cli.common import add_measuring_options, measure
from interp.cli.parser import program
from interp.measurements.patch import Patch

HELP = "patch activations between the prompts of pairs and print the effects by role"

EXAMPLES = (
    "patch --model organism/phi3-deep --limit 48",
    "patch --sites z attn_out --layers 0-2 --granularity position --limit 24",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Patch)
    parser.add_argument(
        "--attributions",
        type=texts.path,
        metavar="DIR",
        help="folder of a run of attribute on the same prompts, to compare scores with effects",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    finished, _ = measure(arguments, Patch)
    if arguments.attributions is not None:
        _compare(finished.folder, arguments.attributions)
    echo(
        f"written to {finished.folder}: intervals in effect_table.csv; "
        f"{program()} report {finished.folder} draws the effects"
    )


def _compare(folder: Path, attributions: Path) -> None:
    """Print effects next to attribution scores, and write the tables and figures of both."""
    from interp.jobs import write_results
    from interp.report.console import print_table
    from interp.report.results_of_patches import scores_beside_effects
    from interp.runs.conclusion import concluding
    from interp.runs.folder import RunFolder

    with concluding(folder) as conclusion:
        results = scores_beside_effects(conclusion.run, RunFolder.read(attributions))
        write_results(conclusion.run, results)
    for title, table in results.shown:
        print_table(table, title=title)
