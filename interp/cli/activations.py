"""`python -m interp activations`: the vectors of a model at sites and tokens, for other tools."""

import argparse

from interp.cli.common import add_measuring_options, measure
from interp.measurements.specs import Activations

HELP = "write activations at chosen sites and tokens as safetensors, with an index as Parquet"

EXAMPLES = (
    "activations --model organism/phi3-deep --roles premise2 last --limit 48",
    "activations --sites z mlp_out --layers 0-2 --roles premise1 --tokens mean --out runs/vectors",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Activations)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    finished, _ = measure(arguments, Activations)
    echo(
        f"written to {finished.folder}: activations.parquet says which row of which tensor each "
        "vector is"
    )
