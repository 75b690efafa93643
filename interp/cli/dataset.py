"""`python -m interp dataset SYSTEM --out FILE`: write a generated data set."""

import argparse

from interp import texts
from interp.cli.parser import add_seed

HELP = "write a system's generated data set as Parquet, CSV or JSONL"

EXAMPLES = (
    "dataset rulebreakers --out rulebreakers.parquet",
    "dataset rulebreakers --seed 1 --out rulebreakers.csv",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "system",
        type=texts.system,
        metavar="SYSTEM",
        help="name of the system, such as rulebreakers",
    )
    parser.add_argument(
        "--out",
        type=texts.path,
        required=True,
        metavar="FILE",
        help="where to write; the suffix decides the format: .parquet, .csv or .jsonl",
    )
    add_seed(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo
    from interp.prompts.files import check_writable, write_table
    from interp.prompts.systems import find_system

    check_writable(arguments.out)
    frame = find_system(arguments.system).dataset(seed=arguments.seed)
    write_table(frame, arguments.out)
    echo(f"{len(frame):,} rows written to {arguments.out}")
