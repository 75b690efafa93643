"""`python -m interp generate`: what models write, judged by the prompts' own answers."""

import argparse

from interp.cli.common import add_measuring_options, measure
from interp.measurements.specs import Generate

HELP = "generate a text behind each prompt and print how many are right"

EXAMPLES = (
    "generate --model organism/llama-shallow --max-new-tokens 32",
    "generate --temperature 0.7 --sampling-seed 1 --limit 48 --out runs/sampled",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Generate)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    finished, _ = measure(arguments, Generate)
    echo(f"written to {finished.folder / 'accuracy_table.csv'}; texts in completions.parquet")
