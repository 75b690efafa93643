"""`python -m interp run STUDY`: every measurement of a study, its tables, figures and report."""

import argparse
from collections.abc import Sequence
from contextlib import suppress

from interp import texts
from interp.cli.common import add_measuring_options, configuration, job_of, run_job
from interp.cli.parser import Parser
from interp.errors import UserError
from interp.options import Options
from interp.plugins import STUDIES, plugins

HELP = "run a whole study: measure all models, make every table and figure, write one report"

EXAMPLES = (
    "run rulebreakers --limit 60 --out runs/study",
    "run logical-forms --model org/model-a org/model-b --out runs/forms",
    "run --config study.yaml",
)


def configure(parser: Parser) -> None:
    """Add the options of the command, which are also those of the study that is named."""
    parser.add_argument(
        "study",
        nargs="?",
        type=texts.one_of("study", plugins(STUDIES)),
        metavar="STUDY",
        help="name of the study, such as rulebreakers; a configuration file may name it too",
    )
    add_measuring_options(
        parser,
        _options(parser.given),
        default_models="the packaged organisms",
        without=("system",),
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: no study was named, or anything that stops it.
    """
    from interp.cli.report import write
    from interp.console import echo
    from interp.jobs import finish_study
    from interp.report.run_report import counted
    from interp.studies.plan import find_study

    name = _named(arguments)
    if name is None:
        raise UserError(f"no study was named; expected one of {', '.join(plugins(STUDIES))}")
    study = find_study(name)
    job = job_of(arguments, study)
    pairs = job.prompts.pairs(study.default_limit)
    echo(f"{name}: {'all pairs' if pairs is None else counted(pairs, 'pair')}")
    plan, runs = run_job(arguments, job)
    finish_study(plan, runs)
    write(plan.folder)


def _options(given: Sequence[str]) -> type[Options]:
    """The options of the study that a command line, or its configuration file, names."""
    first = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    first.add_argument("--config", type=texts.path)
    # Before the flags are known, the value of one looks like the name of a study.
    study = next((word for word in given if word in plugins(STUDIES)), None)
    with suppress(argparse.ArgumentError, UserError):
        config = first.parse_known_args(given)[0].config
        name = _named(argparse.Namespace(study=study, config=config))
        if name in plugins(STUDIES):
            from interp.studies.plan import find_study

            return find_study(name)
    return Options


def _named(arguments: argparse.Namespace) -> str | None:
    """The study that was named, on the command line or else in the configuration file."""
    name = arguments.study or configuration(arguments).get("study")
    return name if isinstance(name, str) else None
