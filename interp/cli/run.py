"""`python -m interp run STUDY`: every measurement of a study, its tables, figures and report."""

import argparse
from typing import TYPE_CHECKING

from interp.cli import options, values
from interp.plugins import STUDIES, plugins

if TYPE_CHECKING:
    from interp.studies import StudyWork

HELP = "run a whole study: measure all models, make every table and figure, write one report"

EXAMPLES = (
    "run rulebreakers --limit 60 --out runs/study",
    "run logical-forms --model org/model-a org/model-b --out runs/forms",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "study",
        type=values.one_of("study", plugins(STUDIES)),
        metavar="STUDY",
        help="name of the study, such as rulebreakers",
    )
    options.add_model_options(parser, default="the packaged organisms")
    options.add_data_option(parser)
    options.add_selection_options(parser, default_limit="the study's own, told when it starts")
    options.add_run_options(parser)


def work(arguments: argparse.Namespace) -> "StudyWork":
    """What the study measures."""
    from interp.cli.common import checked_models, default_folder, models_of
    from interp.models.organisms import organism_names
    from interp.studies import find_study, study_work

    study = find_study(arguments.study)
    if not hasattr(arguments, "limit"):
        arguments.limit = study.default_limit
    models = checked_models(arguments, organism_names(study.organisms))
    return study_work(
        arguments.study,
        arguments.out or default_folder(arguments, "run", arguments.study, {}),
        limit=arguments.limit,
        seed=arguments.seed,
        data=arguments.data,
        **models_of(arguments, models),
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.analysis.accuracy import notes_without_answer
    from interp.cli.common import run_plan
    from interp.cli.report import write
    from interp.console import echo
    from interp.report.run_report import counted
    from interp.runs.status import status_table

    study = work(arguments)
    pairs = "all pairs" if arguments.limit is None else counted(arguments.limit, "pair")
    echo(f"{arguments.study}: {counted(len(study.models), 'model')}, {pairs}")
    runs = run_plan(arguments, study)
    study.finish(runs)
    table = status_table({run.folder.name: run for run in runs})
    for measured in runs:
        if "answers" in measured.tables():
            answers = measured.table("answers", ["model", "answer", "error"])
            for note in notes_without_answer(answers):
                echo(f"{measured.folder.name}: {note}")
    for row in table[table["failed"] > 0].itertuples():
        echo(f"{row.run}: {row.failed:,} prompts of {row.model} have an error")
    write(study.folder)
