"""`python -m interp run STUDY`: every measurement of a study, its tables, figures and report."""

import argparse
import sys
from typing import TYPE_CHECKING

from interp.cli.choice import Choice
from interp.cli.measure import add_measuring_options, asked, run_job
from interp.cli.parser import Parser
from interp.plugins import STUDIES

if TYPE_CHECKING:
    from interp.options import Options
    from interp.studies.study import Study

STUDY = Choice("study", "study", STUDIES)

HELP = "run a whole study: measure all models, make every table and figure, write one report"

EXAMPLES = (
    "run rulebreakers --limit 60 --out runs/study",
    "run faithfulness --model org/model-a org/model-b --out runs/faith",
    "run --config study.yaml",
)


def configure(parser: Parser) -> None:
    """Add the command's options, including those of the named study."""
    STUDY.add_to(parser)
    add_study_options(parser, STUDY.options(parser))


def add_study_options(parser: argparse.ArgumentParser, study: "type[Options]") -> None:
    """The flags of a command that runs a study; a study may not have been named yet."""
    add_measuring_options(
        parser,
        study,
        default_models="the packaged organisms that learned the study's systems",
        without=() if getattr(study, "any_system", False) else ("system",),
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: no study was named, or the study cannot be run.
    """
    name = STUDY.name(arguments)
    from interp.studies.study import find_study

    run_study(arguments, find_study(name))


def run_study(arguments: argparse.Namespace, study: "type[Study]") -> None:
    """Run a study, write its report, and print its answer if it has one.

    Raises:
        UserError: the study cannot be run.
    """
    from interp.cli.report import write
    from interp.console import counted, echo
    from interp.jobs import finish_study

    job, execution = asked(arguments, study)
    pairs = job.prompts.pairs(study.default_limit)
    taken = "all pairs" if pairs is None else f"at most {counted(pairs, 'pair')}"
    echo(f"{study.name}: {taken}")
    plan, runs = run_job(arguments, job, execution)
    finish_study(plan, runs)
    report = write(plan.folder)
    if report.answer:
        sys.stdout.write(f"{report.answer}\n")
