"""What commands that measure share: flags in, a job out, and its finished run folders."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from interp import texts
from interp.cli.fields import add_options, given, options_in
from interp.errors import UserError
from interp.models.loading import Loading
from interp.models.names import model_name
from interp.options import Options
from interp.prompts.source import PromptSource
from interp.runs.running import Execution, Running

if TYPE_CHECKING:
    from collections.abc import Callable

    from interp.jobs import Job
    from interp.measurements.spec import Spec
    from interp.results.result import Result
    from interp.runs.plan import Plan
    from interp.runs.run import Run
    from interp.studies.plan import Study

_SHARED = (PromptSource, Loading, Running, Execution)


def add_measuring_options(
    parser: argparse.ArgumentParser,
    options: type[Options],
    *,
    default_models: str = "a packaged organism that learned the system's prompts",
    without: tuple[str, ...] = (),
) -> None:
    """The flags of a command that measures.

    Args:
        parser: of the command.
        options: what is measured.
        default_models: says in words which models are taken without any named.
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


def job_of(arguments: argparse.Namespace, options: "type[Spec] | type[Study]") -> "Job":
    """The job that a command line asks for.

    Raises:
        UserError: an unknown option, or a value that it cannot have.
    """
    flags = {"model": "models"}
    # A command that takes the name of a study has an argument for it.
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
    Execution(**given(arguments, Execution, config))
    # Importing torch takes seconds; whatever is wrong with the options is known by now.
    sys.stderr.write("loading libraries and prompts ...\n")
    sys.stderr.flush()
    from interp.jobs import Job

    return Job.of(what, **parts, **models)


def configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options in the configuration file; none without one.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """
    if arguments.config is None:
        return {}
    from interp.cli.config_file import config_file  # yaml takes a while to import

    return config_file(arguments.config)


def run_job(arguments: argparse.Namespace, job: "Job") -> "tuple[Plan, list[Run]]":
    """Measure everything that a job asks for, where the command line says.

    Raises:
        UserError: anything that stops the work.
    """
    from interp import jobs

    execution = Execution(**given(arguments, Execution, configuration(arguments)))
    jobs.check_execution(job, execution)
    plan = job.plan(execution.out, command=shlex.join(["interp", *arguments.argv]))
    return plan, jobs.execute_job(job, plan, execution)


def measure(
    arguments: argparse.Namespace,
    spec: "type[Spec]",
    *,
    check: "Callable[[Job], None] | None" = None,
) -> "tuple[Run, Result]":
    """Measure, write the small tables and print them.

    Args:
        arguments: the command line.
        spec: what is measured.
        check: refuses a job that the command cannot use, before anything is measured.
    """
    from interp.jobs import finish
    from interp.report.console import print_items

    job = job_of(arguments, spec)
    if check is not None:
        check(job)
    _, (run,) = run_job(arguments, job)
    result = finish(run.folder, spec)
    print_items(result.shown)
    return run, result


def _names(given: object) -> tuple[str, ...]:
    """The models that a configuration file names."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"models is {given!r:.100}; expected a list of names")
    try:
        return tuple(map(model_name, names))
    except ValueError as error:
        raise UserError(str(error)) from error
