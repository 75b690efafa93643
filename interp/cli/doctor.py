"""`python -m interp doctor`: facts about a model and this machine that matter before a long run."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

from interp.cli.fields import add_options, given
from interp.cli.parser import Parser
from interp.console import counted, echo
from interp.errors import printable
from interp.models.loading import Loading
from interp.models.names import ModelChoice, model_choice
from interp.options import FromText, Options
from interp.prompts.source import PromptSource

if TYPE_CHECKING:
    from interp.doctor import Finding

PROMPTS = 16
"""Number of prompts on which the model is tried."""

WIDTH = 100
"""Width of a line in characters."""


class DoctorOptions(Options):
    """The options that only this command has."""

    model: Annotated[ModelChoice | None, FromText(model_choice, "[NAME=]MODEL")] = None
    """hub name, local folder, or organism/NAME (default: a packaged organism)"""


HELP = "check a model, its tokenizer and this machine, and estimate the time and space of a run"

EXAMPLES = ("doctor --model organism/gemma2", "doctor --model org/model --data pairs.csv")


def configure(parser: Parser) -> None:
    """Add the options of the command."""
    models = parser.add_argument_group("model")
    add_options(models, DoctorOptions)
    add_options(models, Loading)
    add_options(parser.add_argument_group("prompts"), PromptSource)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    source = PromptSource(**given(arguments, PromptSource))
    loading = Loading(**given(arguments, Loading))
    options = DoctorOptions(**given(arguments, DoctorOptions))
    echo("loading libraries ...")

    from interp.doctor import cost, inputs, loaded, machine, numbers, objections
    from interp.models.find import find_model
    from interp.models.load import load_found, set_threads
    from interp.models.organisms import default_organism
    from interp.reading.thoughts import marks_of
    from interp.reading.tokens import tokenize

    echo(f"reading the prompts of {source.system} ...")
    prompts = source.load()
    few = prompts.spread(min(PROMPTS // 2, len(prompts)), source.seed)
    choice = options.model or ModelChoice(place=default_organism(source.system))
    echo(f"reading and loading {choice.name or choice.place} ...")
    model = load_found(find_model(choice.place, loading, named=choice.name), loading.alone())
    set_threads(model, None)
    # If the model thinks, its prompts are shown with an empty thought.
    empty = marks_of(model).thought("") if model.chat.thinks else None
    read = tokenize(model, [replace(prompt, thought=empty) for prompt in few])
    # Each part is printed as soon as it is available.
    found = objections(model, few, prompts, system=source.system)
    _show(f"Read first (answers to {counted(len(few), 'prompt')})", found)
    _show("This machine", machine())
    _show(model.name, loaded(model))
    _show(f"Prompts of {source.system}", inputs(model, read))
    _show("Numbers", numbers(model, read))
    _show("Cost", cost(model, few, whole=len(prompts)))


def _show(title: str, findings: "Iterable[Finding]") -> None:
    """A finding on one line, with its consequences below; nothing without findings."""
    lines = [title]
    for about, found, note in findings:
        lines += wrap(f"{about}: {found}", WIDTH, initial_indent="  ", subsequent_indent="    ")
        if note:
            lines += wrap(f"-> {note}", WIDTH, initial_indent="    ", subsequent_indent="       ")
    if len(lines) == 1:
        return
    sys.stdout.write(printable("\n".join([*lines, "", ""])))
    sys.stdout.flush()
