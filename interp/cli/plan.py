"""`python -m interp plan`: what a set of prompts can show, before any model is run."""

import argparse

from interp import texts
from interp.cli.parser import add_seed
from interp.errors import UserError

HELP = "print the smallest differences that so many prompts can show"

EXAMPLES = ("plan --system rulebreakers --limit 240",)

CORRELATION = 0.2
"""Assumed correlation of a model's answers about one cluster."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--system",
        type=texts.system,
        default="rulebreakers",
        metavar="NAME",
        help="the system that names contrasts (default: rulebreakers)",
    )
    parser.add_argument(
        "--limit",
        type=texts.whole_number(1, texts.MOST_PAIRS),
        metavar="N",
        help="how many pairs are to be asked (default: all)",
    )
    add_seed(parser)
    parser.add_argument(
        "--accuracy",
        type=texts.share,
        default=0.5,
        metavar="SHARE",
        help="expected accuracy; differences are hardest to find at 0.5 (default: 0.5)",
    )
    parser.add_argument(
        "--correlation",
        type=texts.share,
        default=CORRELATION,
        metavar="SHARE",
        help=f"of a model's answers about one cluster (default: {CORRELATION})",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: a system that names no contrasts.
    """
    from interp.analysis.contrasts import SystemWithContrasts
    from interp.analysis.power import plan_table
    from interp.console import counted, echo
    from interp.prompts.systems import find_system, load_prompts
    from interp.report.console import print_table

    system = find_system(arguments.system)
    if not isinstance(system, SystemWithContrasts):
        raise UserError(
            f"the system {arguments.system!r} names no contrasts; expected one with the attributes "
            "contrasts and cluster, such as rulebreakers"
        )
    prompts = load_prompts(arguments.system, limit=arguments.limit, seed=arguments.seed)
    pairs = prompts.to_frame().drop_duplicates("pair_id")
    table = plan_table(
        pairs,
        system.contrasts,
        cluster=system.cluster,
        accuracy=arguments.accuracy,
        correlation=arguments.correlation,
    )
    clusters = counted(pairs[system.cluster].nunique(), "cluster")
    print_table(table, title=f"{counted(len(pairs), 'pair')}, {clusters}")
    echo(
        "detectable: the difference that a test at 5%, before correction, finds with a power of "
        f"80%, at an accuracy of {arguments.accuracy:g} and a correlation of "
        f"{arguments.correlation:g} between answers about one {system.cluster}"
    )
