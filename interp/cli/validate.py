"""`python -m interp validate PATH`: whether a folder is complete, or a file of pairs faultless."""

import argparse
from pathlib import Path

from interp import texts
from interp.errors import UserError

HELP = "check the files that a command left, or a file of your own pairs"

EXAMPLES = ("validate runs/all", "validate runs/study", "validate pairs.csv")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "path",
        type=texts.path,
        metavar="PATH",
        help="what a command wrote as --out, or a file of pairs",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: something is missing or wrong.
    """
    (_check_pairs if arguments.path.is_file() else _check_folder)(arguments.path)


def _check_pairs(file: Path) -> None:
    """Refuse a faulty file of pairs, listing each fault with its line."""
    from interp.console import counted, echo
    from interp.prompts.own.pairs import faults, read_pairs

    if found := faults(file):
        listed = "\n  ".join(found)
        raise UserError(f"{file} has {counted(len(found), 'fault')}:\n  {listed}")
    prompts = read_pairs(file)
    pairs = counted(len({prompt.pair_id for prompt in prompts}), "pair")
    echo(f"{file} is without fault: {pairs} of {', '.join(prompts.sides)}; the first prompt:")
    echo(prompts[0].text)


def _check_folder(folder: Path) -> None:
    """Check every shard's checksums and columns, and the merged tables."""
    from interp.cli.folders import runs_in, study_in
    from interp.console import echo
    from interp.runs.folder import problems

    runs, study = runs_in(folder), study_in(folder)
    if study is not None:
        found = study.faults()
    else:
        found = [f"{name}: {line}" for name, run in runs.items() for line in problems(run)]
    if found:
        listed = "\n  ".join(found)
        raise UserError(
            f"{folder} is not whole:\n  {listed}\n"
            "Rerun the command that wrote it to measure what is missing or has changed"
        )
    shards = sum(len(run.shards(model)) for run in runs.values() for model in run.models())
    echo(f"{folder} is whole: {shards:,} shards and the merged tables")
