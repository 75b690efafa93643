"""Commands that look at one model: `doctor` checks it, and `scan` asks it a single prompt."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

from interp import texts
from interp.choices import DEFAULT_SYSTEM
from interp.cli.fields import OptionsCommand, add_options
from interp.cli.measure import print_tables
from interp.cli.parser import Parser
from interp.console import counted, echo
from interp.errors import printable
from interp.files import check_replaceable
from interp.models.loading import Loading
from interp.models.names import ModelChoice, model_choice
from interp.options import Flag, FromText
from interp.prompts.own.braces import marked, options_of
from interp.prompts.source import PromptSource

if TYPE_CHECKING:
    from interp.doctor import Finding
    from interp.models.model import Model

PROMPTS = 16
"""Number of prompts on which the model is tried."""

WIDTH = 100
"""Width of a line in characters."""


def _load(choice: ModelChoice | None, system: str, loading: Loading) -> "Model":
    """The chosen model or, by default, the packaged organism that matches a system's prompts."""
    from interp.models.find import find_chosen
    from interp.models.load import load_found, set_threads
    from interp.models.organisms import default_organism

    chosen = choice or ModelChoice(place=default_organism(system))
    echo(f"reading and loading {chosen.name or chosen.place} ...")
    model = load_found(find_chosen([chosen], loading)[0], loading.alone())
    set_threads(model, None)
    return model


class DoctorCommand(PromptSource, Loading, OptionsCommand):
    """Check a model, its tokenizer and this machine, and estimate the time and space of a run."""

    EXAMPLES = ("doctor --model organism/gemma2", "doctor --model org/model --data pairs.csv")

    model: Annotated[ModelChoice | None, FromText(model_choice, "[NAME=]MODEL")] = None
    """hub name, local folder, or organism/NAME (default: a packaged organism)"""

    @classmethod
    def configure(cls, parser: Parser) -> None:
        """Add the options of the command."""
        models = parser.add_argument_group("model")
        add_options(models, cls, without={*PromptSource.model_fields, *Loading.model_fields})
        add_options(models, Loading)
        add_options(parser.add_argument_group("prompts"), PromptSource)

    def _execute(self) -> None:
        echo("loading libraries ...")

        from interp.doctor import cost, inputs, loaded, machine, numbers, objections
        from interp.reading.thoughts import marks_of
        from interp.reading.tokens import tokenize

        echo(f"reading the prompts of {self.system} ...")
        prompts = self.load()
        few = prompts.spread(min(PROMPTS // 2, len(prompts)), self.seed)
        model = _load(self.model, self.system, self)
        # If the model thinks, its prompts are shown with an empty thought.
        empty = marks_of(model).thought("") if model.chat.thinks else None
        read = tokenize(model, [replace(prompt, thought=empty) for prompt in few])
        # Each part is printed as soon as it is available.
        findings = objections(model, few, prompts, system=self.system)
        _show(f"Read first (answers to {counted(len(few), 'prompt')})", findings)
        _show("This machine", machine())
        _show(model.name, loaded(model))
        _show(f"Prompts of {self.system}", inputs(model, read))
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


class ScanCommand(Loading, OptionsCommand):
    """Look at one prompt: its answer, shading and the effects of its segments, in one page."""

    EXAMPLES = (
        'scan "{If Anne is in Sweden, then she is not in Stockholm.} {Anne is in Stockholm.} Is '
        'Anne in Sweden? Answer Yes or No."',
        'scan --model org/model --options "Paris|Rome" --out anne.html "{city: Anne lives in '
        'France.} She is in"',
    )

    prompt: Annotated[str, Flag("PROMPT", positional=True), FromText(str, "PROMPT")]
    """the prompt, with the parts whose effects are measured in braces; {name: text} names a part"""
    model: Annotated[ModelChoice | None, FromText(model_choice, "[NAME=]MODEL")] = None
    """hub name, local folder, GGUF file, or organism/NAME (default: a packaged organism)"""
    options: tuple[Annotated[str, FromText(str, "TEXT")], ...] = ("Yes", "No")
    """the answers, also with bars, as in "Paris|Rome"; the first two are compared"""
    out: Annotated[Path, FromText(texts.path, "FILE")] = Path("scan.html")
    """the page, which contains its tables and figures; in a folder that exists, scan.html"""

    @classmethod
    def configure(cls, parser: Parser) -> None:
        """Add the options of the command."""
        add_options(parser, cls, without=Loading.model_fields)
        add_options(parser.add_argument_group("model"), Loading)

    def _execute(self) -> None:
        # Mistakes are reported before anything is loaded.
        marked(self.prompt)
        options_of(self.options)
        out = self.out / "scan.html" if self.out.is_dir() else self.out
        check_replaceable(out)
        echo("loading libraries ...")

        from interp.report.console import print_cautions, print_sentences
        from interp.report.write import write_page
        from interp.scanning import scan

        report = scan(_load(self.model, DEFAULT_SYSTEM, self), self.prompt, self.options)
        page = write_page(report, out, embed=True)
        assert report.glance is not None
        print_cautions(caution.said for caution in report.glance.cautions)
        print_tables(report.items)
        print_sentences([*report.glance.sentences, f"written to {page}"])
