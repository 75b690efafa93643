"""`python -m interp evaluate`: accuracy without attribution, one row a model."""

import argparse
from typing import TYPE_CHECKING

from interp.cli import options
from interp.files import write_whole

if TYPE_CHECKING:
    from interp.runs.plan import Work

HELP = "score answers and print the accuracies"

EXAMPLES = (
    "evaluate --model organism/llama-deep --limit 960",
    "evaluate --limit all --executor local --workers 4 --out runs/all",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_model_options(parser)
    options.add_prompt_options(parser)
    options.add_run_options(parser)


def work(arguments: argparse.Namespace) -> "Work":
    """What the command measures."""
    from interp.cli.common import work_of_command
    from interp.measurements.prompts import scoring

    return work_of_command(arguments, command="evaluate", measurement=scoring, parameters={})


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.analysis.accuracy import accuracy_table
    from interp.cli.common import run_plan
    from interp.cli.summary import summarize
    from interp.console import echo
    from interp.report.console import print_table
    from interp.runs.conclusion import concluding

    (finished,) = run_plan(arguments, work(arguments))
    with concluding(finished.folder) as conclusion:
        run = conclusion.run
        answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
        prompts = run.table("prompts", ["prompt_id", "pair_id", "side"])
        table = accuracy_table(answers, prompts, finished.prompts.sides)
        file = finished.folder / "accuracy_table.csv"
        write_whole(file, lambda path: table.to_csv(path, index=False))
        conclusion.summary = summarize(answers, answers[answers["error"] != ""])
    print_table(table, title="Accuracy")
    echo(f"written to {file}")
