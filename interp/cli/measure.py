"""Measurement commands, made from specs: flags become a job, and the job finished run folders."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp import texts
from interp.cli.fields import add_options, given, options_in
from interp.cli.parser import Parser, program
from interp.errors import UserError
from interp.measurements.spec import Spec
from interp.models.loading import Loading, model_name
from interp.options import Options
from interp.prompts.source import PromptSource
from interp.runs.running import Execution, Running

if TYPE_CHECKING:
    from interp.jobs import Job
    from interp.runs.execute import Plan
    from interp.runs.run import Run
    from interp.studies.study import Study

_SHARED = (PromptSource, Loading, Running, Execution)


class Measure:
    """The command of a measurement: everything but its flags is in the spec."""

    def __init__(self, spec: type[Spec]) -> None:
        self.spec = spec
        self.HELP = spec.help
        self.EXAMPLES = spec.examples

    def configure(self, parser: Parser) -> None:
        """Add the options of the command."""
        add_measuring_options(parser, self.spec, without=self.spec.unused)

    def run(self, arguments: argparse.Namespace) -> None:
        """Measure, write the small tables, and print them.

        Raises:
            UserError: the work cannot be done.
        """
        job, execution = asked(arguments, self.spec)
        from interp.console import echo
        from interp.jobs import finish
        from interp.report.console import print_items

        _, (run,) = run_job(arguments, job, execution)
        result = finish(run.folder, self.spec)
        print_items(result.shown)
        self.conclude(arguments, run.folder)
        tables = ", ".join(f"{name}.csv" for name in result.derived())
        echo(self.spec.written.format(folder=run.folder, tables=tables, program=program()))

    def conclude(self, arguments: argparse.Namespace, folder: Path) -> None:
        """Do whatever else the command does with the finished run folder."""


class MeasureGroup:
    """A command whose parts are measurements, such as `probe linear` and `probe knowledge`."""

    def __init__(
        self, specs: Sequence[type[Spec]], *, help_: str, examples: Sequence[str] = ()
    ) -> None:
        self.HELP = help_
        self.EXAMPLES = examples
        self._parts = {spec.name.removeprefix(f"{spec.group}-"): Measure(spec) for spec in specs}

    def configure(self, parser: Parser) -> None:
        """Add the parts, each with its options."""
        name = next(iter(self._parts.values())).spec.group
        parts = parser.add_subparsers(dest=name, required=True, metavar=name.upper())
        for part, command in self._parts.items():
            own = parts.add_parser(
                part, help=command.HELP, description=command.HELP, examples=command.EXAMPLES
            )
            command.configure(own)
            own.set_defaults(part=command)

    def run(self, arguments: argparse.Namespace) -> None:
        """Run one part."""
        arguments.part.run(arguments)


def add_measuring_options(
    parser: argparse.ArgumentParser,
    options: type[Options],
    *,
    default_models: str = "a packaged organism that learned the system's prompts",
    without: tuple[str, ...] = (),
) -> None:
    """The flags of a command that measures.

    Args:
        parser: the command's parser.
        options: options that say what is measured.
        default_models: the models taken if none is named, in words.
        without: prompt options that the command does not offer.
    """
    add_config_option(parser)
    models = parser.add_argument_group("models")
    models.add_argument(
        "--model",
        nargs="+",
        action="extend",
        type=model_name,
        default=argparse.SUPPRESS,
        dest="models",
        metavar="NAME",
        help="hub name, local folder, or organism/NAME; several give one row each "
        f"(default: {default_models})",
    )
    add_options(models, Loading)
    add_options(parser.add_argument_group("prompts"), PromptSource, without=without)
    add_options(parser.add_argument_group("measurement"), options)
    add_options(parser.add_argument_group("run"), Running)
    add_options(parser.add_argument_group("workers"), Execution)


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """The flag of the configuration file, which `configuration` reads."""
    parser.add_argument(
        "--config",
        type=texts.path,
        metavar="FILE",
        help="YAML file of options, under the names of their flags; flags override it",
    )


def asked(
    arguments: argparse.Namespace, options: "type[Spec] | type[Study]"
) -> "tuple[Job, Execution]":
    """The job that a command line asks for, and how it is executed.

    Raises:
        UserError: an unknown option, or a value that it cannot have.
    """
    flags = {"model": "models"}
    # A command that takes a study's name has an argument for it.
    if hasattr(arguments, "study"):
        flags["study"] = "study"
    config = options_in(
        configuration(arguments), arguments.config, (*_SHARED, options), flags=flags
    )
    models: dict[str, Any] = {}
    if "models" in config:
        models = {"models": _names(config["models"])}
    if hasattr(arguments, "models"):
        models = {"models": tuple(arguments.models)}
    what = options(**given(arguments, options, config))
    parts = {
        "prompts": PromptSource(**given(arguments, PromptSource, config)),
        "loading": Loading(**given(arguments, Loading, config)),
        "running": Running(**given(arguments, Running, config)),
    }
    execution = Execution(**given(arguments, Execution, config))
    # Importing torch takes seconds; mistakes in the options are known by now.
    sys.stderr.write("loading libraries and prompts ...\n")
    sys.stderr.flush()
    from interp.jobs import Job

    return Job.of(what, **parts, **models), execution


def configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options in the configuration file; none if there is no file.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """
    if arguments.config is None:
        return {}
    read: dict[str, Any] | None = getattr(arguments, "configured", None)
    if read is not None:
        return read
    from interp.cli.config_file import config_file  # yaml takes a while to import

    return config_file(arguments.config)


def run_job(
    arguments: argparse.Namespace, job: "Job", execution: Execution
) -> "tuple[Plan, list[Run]]":
    """Measure everything that a job asks for, where the command line says.

    Raises:
        UserError: the work cannot be done.
    """
    from interp import jobs

    jobs.check_execution(job, execution)
    plan = job.plan(execution.out, command=shlex.join(["interp", *arguments.argv]))
    return plan, jobs.execute_job(job, plan, execution)


def _names(given: object) -> tuple[str, ...]:
    """The models that a configuration file names."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"models is {given!r:.100}; expected a list of names")
    try:
        return tuple(map(model_name, names))
    except ValueError as error:
        raise UserError(str(error)) from error
