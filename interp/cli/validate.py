"""`python -m interp validate DIR`: whether what a run or a study left is whole and unchanged."""

import argparse

from interp import texts
from interp.errors import UserError

HELP = "check every shard's checksums and columns, and the merged tables"

EXAMPLES = ("validate runs/all", "validate runs/study")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", type=texts.path, metavar="DIR", help="what a command wrote as --out"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: something is missing or wrong.
    """
    from interp.cli.folders import runs_in, study_in
    from interp.console import echo
    from interp.runs.validate import problems

    runs, study = runs_in(arguments.folder), study_in(arguments.folder)
    found = [f"{name}: {line}" for name, run in runs.items() for line in problems(run)]
    if study is not None:
        found = [*study.unfinished(), *found]
    if found:
        listed = "\n  ".join(found)
        raise UserError(
            f"{arguments.folder} is not whole:\n  {listed}\n"
            "Rerun the command that wrote it to measure what is missing or has changed"
        )
    shards = sum(len(run.shards(model)) for run in runs.values() for model in run.models())
    echo(f"{arguments.folder} is whole: {shards:,} shards and the merged tables")
