"""`python -m interp effects`: what each segment does to the answer, by donors in its place."""

import argparse

from interp.cli.common import add_measuring_options, measure
from interp.measurements.specs import Effects

HELP = "exchange segments for those of other prompts and print what each does to the answer"

EXAMPLES = (
    "effects --model organism/phi3-deep --limit 48",
    "effects --segments premise1 premise2 --donors 16 --out runs/effects",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Effects)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    finished, _ = measure(arguments, Effects)
    echo(
        f"written to {finished.folder / 'segment_effect_table.csv'}; "
        "prompt by prompt in segment_effects.parquet"
    )
