"""`python -m interp evaluate`: accuracy without attribution, one row per model."""

import argparse

from interp.cli.common import add_measuring_options, measure
from interp.measurements.specs import Evaluate

HELP = "score answers and print the accuracies"

EXAMPLES = (
    "evaluate --model organism/llama-deep --limit 960",
    "evaluate --limit all --executor local --workers 4 --out runs/all",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Evaluate)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    finished, _ = measure(arguments, Evaluate)
    echo(f"written to {finished.folder / 'accuracy_table.csv'}")
