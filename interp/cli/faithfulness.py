"""`python -m interp faithfulness`: which attribution method to trust for a model."""

import argparse
import sys

from interp.cli.common import add_measuring_options, job_of, run_job

HELP = "rank attribution methods by how well they say what segments do, and write one report"

EXAMPLES = (
    "faithfulness --model organism/phi3-shallow organism/phi3-deep --out runs/faith",
    "faithfulness --model org/model --system logical-forms --methods all --limit 24",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    # Heavy, as studies are: it needs torch.
    from interp.studies.faithfulness.study import Faithfulness

    add_measuring_options(
        parser, Faithfulness, default_models="the packaged organisms that learned the system"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.cli.report import write
    from interp.jobs import finish_study
    from interp.studies.faithfulness.study import Faithfulness

    plan, runs = run_job(arguments, job_of(arguments, Faithfulness))
    finish_study(plan, runs)
    report = write(plan.folder)
    sys.stdout.write(f"{report.sections[0].text}\n")
