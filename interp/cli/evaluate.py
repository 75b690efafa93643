"""`python -m interp evaluate`: accuracy without attribution, one row a model."""

import argparse

from interp.cli import options
from interp.files import write_whole

HELP = "score answers and print the accuracies"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_model_options(parser)
    options.add_prompt_options(parser)
    options.add_run_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.analysis.accuracy import accuracy_table
    from interp.cli.measuring import run_measurement, say, summarize
    from interp.measure import scoring
    from interp.report.console import print_table

    finished = run_measurement(
        arguments,
        command="evaluate",
        parameters={},
        measurement=lambda model: scoring(model, batch_tokens=arguments.batch_tokens),
    )
    answers = finished.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    prompts = finished.table("prompts", ["prompt_id", "pair_id", "side"])
    table = accuracy_table(answers, prompts, finished.prompts.sides)
    file = finished.folder / "accuracy_table.csv"
    write_whole(file, lambda path: table.to_csv(path, index=False))
    finished.finish(summarize(answers, answers[answers["error"] != ""]))
    print_table(table, title="Accuracy")
    say(f"written to {file}")
