"""Measurement commands, built from specs: flags are turned into a job, which writes run folders."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from interp.cli.fields import Configuration, add_options, flag_of, given, options_in
from interp.cli.parser import Parser, program
from interp.console import echo
from interp.errors import UserError
from interp.measurements.specs import Circuits, Edges, Evaluate, Stored
from interp.measuring.spec import Spec
from interp.models.loading import Loading
from interp.models.names import ModelChoice, model_choice
from interp.options import Flag, FromText, Options
from interp.prompts.source import PromptSource
from interp.runs.options import ComputeOptions, ExecutionOptions
from interp.stored.text_file import TextFile, text_file

if TYPE_CHECKING:
    from interp.jobs import Job
    from interp.report.page import Item
    from interp.studies.study import Study


class Models(Options):
    """The models that a command measures."""

    models: Annotated[
        tuple[ModelChoice, ...], FromText(model_choice, "[NAME=]MODEL"), Flag("model")
    ] = ()
    """hub name, local folder, GGUF file, organism/NAME or, as an adapter for --base, graft/NAME;
    one row per model (default: packaged organisms trained on the prompts). A local model is named
    by the last part of its path, or by NAME
    """


class MeasureCommand:
    """The command of a measurement, built from its spec."""

    RESUMES = True

    def __init__(self, spec: type[Spec]) -> None:
        self.spec = spec
        self.HELP = spec.help
        self.EXAMPLES = spec.examples

    def configure(self, parser: Parser) -> None:
        """Add the options of the command."""
        add_measuring_options(parser, self.spec, without=self.spec.unused)

    def run(self, arguments: argparse.Namespace) -> None:
        """Measure, write the small tables, and print them."""
        self.carry_out(*job_of(arguments, self.spec), arguments)

    def carry_out(
        self, job: "Job", execution: ExecutionOptions, arguments: argparse.Namespace
    ) -> None:
        """Carry out a job, write its small tables, and print them."""
        _, (run,) = job.run(execution, command=arguments.command_line)
        finish_and_print(run.folder, self.spec)


def finish_and_print(folder: Path, spec: type[Spec]) -> None:
    """Write the small tables of a run, print its cautions and tables, and say where they are."""
    from interp.analysis.cautions.caution import UNTESTED  # the job has already said this
    from interp.report.console import print_cautions
    from interp.results.files import finish

    result = finish(folder, spec)
    print_cautions(caution.said for caution in result.cautions if caution.kind != UNTESTED)
    print_tables(result.shown)
    tables = ", ".join(f"{name}.csv" for name in result.derived())
    echo(spec.written.format(folder=folder, tables=tables, program=program()))


def print_tables(items: "Iterable[Item]") -> None:
    """Print those of the items that are tables."""
    from interp.report.console import print_table
    from interp.report.page import TableItem

    for item in items:
        if isinstance(item, TableItem):
            for title, table in item.shown:
                print_table(table, title=title)


class CircuitsCommand(MeasureCommand):
    """`python -m interp circuits`: circuits from edges; without --edges, it measures them first."""

    def carry_out(
        self, job: "Job", execution: ExecutionOptions, arguments: argparse.Namespace
    ) -> None:
        """Measure the edges, if no run is given, and then the circuits with the same model."""
        from interp.results.files import finish
        from interp.runs.plan import keeping_model

        spec = job.what
        job.check(execution)  # before the edges are measured
        with keeping_model():
            if isinstance(spec, Circuits) and spec.edges is None:
                edges = job.model_copy(update={"what": spec.first()})
                out = execution.out and execution.out.with_name(f"{execution.out.name}-edges")
                _, (run,) = edges.run(
                    execution.model_copy(update={"out": out}), command=arguments.command_line
                )
                finish(run.folder, Edges)
                echo(f"the edges are in {run.folder}")
                chosen = spec.model_copy(update={"edges": run.folder})
                job = job.model_copy(update={"what": chosen})
            super().carry_out(job, execution, arguments)


CIRCUITS = CircuitsCommand(Circuits)


class MeasureGroup:
    """A command with measurements as subcommands, such as `probe linear` and `probe knowledge`."""

    RESUMES = True

    def __init__(
        self, specs: Sequence[type[Spec]], *, help_: str, examples: Sequence[str] = ()
    ) -> None:
        self.HELP = help_
        self.EXAMPLES = examples
        self._parts = {
            spec.name.removeprefix(f"{spec.group}-"): MeasureCommand(spec) for spec in specs
        }

    def configure(self, parser: Parser) -> None:
        """Add each subcommand with its options."""
        name = next(iter(self._parts.values())).spec.group
        parts = parser.add_subparsers(dest=name, required=True, metavar=name.upper())
        for part, command in self._parts.items():
            subparser = parts.add_parser(
                part, help=command.HELP, description=command.HELP, examples=command.EXAMPLES
            )
            command.configure(subparser)
            subparser.set_defaults(part=command, program=subparser.prog)

    def run(self, arguments: argparse.Namespace) -> None:
        """Run the chosen subcommand."""
        arguments.part.run(arguments)


def add_measuring_options(
    parser: Parser, options: type[Options], *, without: Sequence[str] = ()
) -> None:
    """The flags of a measurement command: its options, and those of prompts, models and runs.

    `without` names options of prompts that the command does not offer.
    """
    add_options(parser, Configuration)
    models = parser.add_argument_group("models")
    add_options(models, Models)
    add_options(models, Loading)
    add_options(parser.add_argument_group("prompts"), PromptSource, without=without)
    add_options(parser.add_argument_group("measurement"), options)
    add_options(parser.add_argument_group("run"), ComputeOptions)
    add_options(parser.add_argument_group("workers"), ExecutionOptions)


def job_of(
    arguments: argparse.Namespace, options: "type[Spec] | type[Study]"
) -> "tuple[Job, ExecutionOptions]":
    """The job that a command line requests, and its execution options."""
    kinds = (Models, PromptSource, Loading, ComputeOptions, ExecutionOptions, options)
    others = ("study",) if hasattr(arguments, "study") else ()
    config = options_in(arguments, kinds, others=others)
    settings = {kind: given(arguments, kind, config) for kind in kinds}
    if issubclass(options, Spec):
        settings[Loading] = dict(options.with_thinking(settings[Loading]))
    made: list[Any] = [kind(**settings[kind]) for kind in kinds]
    models, source, loading, computing, execution, what = made
    # Importing torch takes seconds, so mistakes in the options have been reported before this.
    echo("loading libraries ...")
    from interp.jobs import Job

    job = Job(what=what, models=models.models, prompts=source, loading=loading, computing=computing)
    return job, execution


class StoredAnswers(Options):
    """The option of `evaluate` that judges stored texts instead of asking a model."""

    answers_from: tuple[Annotated[TextFile, FromText(text_file, "[NAME=]FILE")], ...] = ()
    """judge the texts in these files instead, without a model: batch output of vLLM, of
    OpenAI-like servers, Anthropic or Gemini, vLLM's RequestOutput as JSONL, Inspect logs, lm-eval
    samples, or a table (prompt, text, draw, thought, answer, model). NAME names the model if a file
    does not
    """


_OF_MODELS = (Models, Loading, Evaluate, ComputeOptions, ExecutionOptions)
"""Options that concern models and workers, apart from out and fail_on_error."""


class EvaluateCommand(MeasureCommand):
    """`evaluate`, which reads answers from a model or, with --answers-from, from files."""

    def configure(self, parser: Parser) -> None:
        """Add the options of the command."""
        super().configure(parser)
        add_options(parser.add_argument_group("stored texts"), StoredAnswers)

    def run(self, arguments: argparse.Namespace) -> None:
        """Measure models, or judge stored texts; write the small tables, and print them."""
        config = options_in(arguments, [*_OF_MODELS, PromptSource, StoredAnswers])
        files = StoredAnswers(**given(arguments, StoredAnswers, config)).answers_from
        if not files:
            super().run(arguments)
            return
        for kind in _OF_MODELS:
            for name in given(arguments, kind, config):
                if name not in ("out", "fail_on_error"):
                    raise UserError(
                        f"got both --answers-from and {flag_of(kind, name)}, but texts are judged "
                        f"without a model; omit {flag_of(kind, name)}"
                    )
        source = PromptSource(**given(arguments, PromptSource, config))
        computing = ComputeOptions(**given(arguments, ComputeOptions, config))
        execution = ExecutionOptions(**given(arguments, ExecutionOptions, config))
        from interp.measurements.answers.stored import judge_files

        folder = judge_files(
            files,
            source,
            out=execution.out,
            fail_on_error=computing.fail_on_error,
            command=arguments.command_line,
        )
        finish_and_print(folder, Stored)


EVALUATE = EvaluateCommand(Evaluate)
