"""`python -m interp dataset SYSTEM --out FILE`: write a generated data set."""

import argparse
from pathlib import Path

HELP = "write a system's generated data set as Parquet, CSV or JSONL"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("system", help="name of the system, such as rulebreakers")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="where to write; the suffix decides the format: .parquet, .csv or .jsonl",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed (default: 0)")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.prompts.files import check_writable, write_table
    from interp.prompts.systems import find_system
    from interp.runs.progress import tell

    check_writable(arguments.out)
    frame = find_system(arguments.system).dataset(seed=arguments.seed)
    write_table(frame, arguments.out)
    tell(f"{len(frame):,} rows written to {arguments.out}")
