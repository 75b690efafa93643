"""`python -m interp faithfulness`: which attribution method to trust for a model.

A short name for `python -m interp run faithfulness`.
"""

import argparse

from interp.cli.run import add_study_options, run_study

HELP = "rank attribution methods by how well they say what segments do, and write one report"

EXAMPLES = (
    "faithfulness --model organism/phi3-shallow organism/phi3-deep --out runs/faith",
    "faithfulness --model org/model --system rulebreakers --methods all --limit 24",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    from interp.faithfulness.study import Faithfulness

    add_study_options(parser, Faithfulness)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.faithfulness.study import Faithfulness

    run_study(arguments, Faithfulness)
