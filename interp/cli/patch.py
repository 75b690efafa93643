"""`python -m interp patch`: what activations of each prompt's counterpart do to its answer."""

import argparse
from pathlib import Path

from interp import texts
from interp.cli.common import add_measuring_options, measure
from interp.cli.parser import program
from interp.measurements.specs import Patch

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
    from interp.report.console import print_items
    from interp.results.attributions import Attributions
    from interp.results.patches import Patches, agreement_items
    from interp.results.result import write_items
    from interp.runs.conclusion import concluding
    from interp.runs.folder import RunFolder

    with concluding(folder) as conclusion:
        attributed = Attributions.of(RunFolder.read(attributions))
        items = list(agreement_items(Patches.of(conclusion.run), attributed))
        write_items(folder, items)
    print_items(items)
