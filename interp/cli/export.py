"""`python -m interp export FORMAT --system S --out DIR`: prompts for other libraries."""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interp import texts
from interp.cli.fields import add_options, given
from interp.prompts.source import PromptSource

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet

HELP = "write prompts as a task of lm-eval or inspect, or as a data set described by croissant"

EXAMPLES = (
    "export lm-eval --system rulebreakers --limit 480 --out tasks",
    "export inspect --data pairs.csv --out tasks",
    "export croissant --out rulebreakers",
)

FORMATS = ("lm-eval", "inspect", "croissant")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "format",
        type=texts.one_of("format", FORMATS),
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--out", type=texts.path, required=True, metavar="DIR", help="folder of the files"
    )
    add_options(parser.add_argument_group("prompts"), PromptSource)


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: the format cannot hold the prompts, or the folder cannot be written to.
    """
    from interp.console import echo
    from interp.files import write_whole, writing

    prompts = PromptSource(**given(arguments, PromptSource, {})).load()
    files = _writer(arguments.format)(prompts)
    with writing(arguments.out):
        arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(arguments.out / name, partial(Path.write_bytes, data=text.encode("utf-8")))
    echo(f"{len(prompts):,} prompts written to {arguments.out}: {', '.join(files)}")


def _writer(name: str) -> "Callable[[PromptSet], Mapping[str, str]]":
    from interp.export.prompts import described, inspect_task, lm_eval_task

    return {
        "lm-eval": lm_eval_task,
        "inspect": inspect_task,
        "croissant": described,
    }[name]
