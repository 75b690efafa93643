"""`python -m interp attribute`: score ratios of the premises next to accuracy, per model."""

import argparse
from typing import TYPE_CHECKING

from interp.cli.common import add_measuring_options, measure
from interp.errors import UserError
from interp.measurements.specs import Attribute

if TYPE_CHECKING:
    from interp.jobs import Job
    from interp.runs.folder import RunFolder

HELP = "attribute answers to the segments of the prompts and print the attribution table"

EXAMPLES = (
    "attribute --model organism/llama-shallow organism/gemma2",
    "attribute --model org/model --methods input_gradient --limit all --out runs/model",
    "attribute --model org/model --target margin --calibrated",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_measuring_options(parser, Attribute)
    parser.add_argument(
        "--calibrated",
        action="store_true",
        help="also print how probable it is that a premise decides, by its share of the scores, "
        "as fitted on the packaged organisms, with the error of that",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.console import echo

    check = _check_calibration if arguments.calibrated else None
    finished, result = measure(arguments, Attribute, check=check)
    names = list(result.derived())
    if arguments.calibrated:
        names += _calibrate(finished)
    echo(f"written to {finished.folder}: {', '.join(f'{name}.csv' for name in names)}")


def _calibrate(run: "RunFolder") -> list[str]:
    """Print the calibrated probabilities and write them; returns the names of the tables."""
    from interp.analysis.faithfulness.calibrated import (
        Calibration,
        calibrated_shares,
        calibrated_table,
    )
    from interp.report.console import print_table
    from interp.report.formatting import segment_label
    from interp.report.page import TableItem
    from interp.results.result import write_items
    from interp.runs.conclusion import concluding

    calibration = Calibration.read()
    shares = calibrated_shares(run.table("segment_scores"), calibration)
    table = calibrated_table(shares)
    tables = {"calibrated_shares": shares, "calibrated_table": table}
    with concluding(run.folder) as conclusion:
        write_items(
            conclusion.run.folder, [TableItem(name, name, frame) for name, frame in tables.items()]
        )
    decisive = segment_label(calibration.segments[0])
    title = f"Probability that {decisive} decides: means over prompts; error and AUC on organisms"
    print_table(table, title=title)
    return list(tables)


def _check_calibration(job: "Job") -> None:
    """Check that a job measures what the maps were fitted on.

    Raises:
        UserError: another system, or another target.
    """
    from interp.analysis.faithfulness.calibrated import Calibration

    fitted = Calibration.read().system
    if job.prompts.system != fitted:
        raise UserError(
            f"the calibration was fitted on prompts of {fitted}, these are of "
            f"{job.prompts.system}; leave --calibrated out"
        )
    target = job.options["target"]
    if target != "margin":
        raise UserError(
            f"the calibration was fitted on scores of the margin, which is over all forms of both "
            f"answers, these are of {target}; give --target margin"
        )
