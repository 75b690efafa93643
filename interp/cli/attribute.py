"""`python -m interp attribute`: score ratios of the premises next to accuracy, per model."""

import argparse

from interp.cli.common import add_measuring_options, measure
from interp.measurements.specs import Attribute

HELP = "attribute answers to the segments of the prompts and print the attribution table"

EXAMPLES = (
    "attribute --model organism/llama-shallow organism/gemma2",
    "attribute --model org/model --methods input_gradient --limit all --out runs/model",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Attribute)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    finished, results = measure(arguments, Attribute)
    names = list(results.tables)
    echo(f"written to {finished.folder}: {', '.join(f'{name}.csv' for name in names)}")
