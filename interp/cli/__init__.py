"""The command line: measurement commands are built from specs; the others each have a module."""

import argparse
import errno
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, version
from io import TextIOWrapper
from typing import Any, Protocol, runtime_checkable

from interp.cli.measure import MeasureCommand
from interp.cli.parser import Parser, program, with_help
from interp.errors import UserError, printable, shortened, shortened_list
from interp.measuring.spec import Spec, spec_named
from interp.options import OptionError
from interp.plugins import COMMANDS as GROUP
from interp.plugins import MEASUREMENTS, loaded, misfit, named, plugins

COMMANDS = {
    "attribute": "interp.measurements.specs:Attribute",
    "evaluate": "interp.cli.measure:EVALUATE",
    "generate": "interp.measurements.specs:Generate",
    "patch": "interp.measurements.specs:Patch",
    "edges": "interp.measurements.specs:Edges",
    "circuits": "interp.cli.measure:CIRCUITS",
    "steer": "interp.measurements.specs:Steer",
    "effects": "interp.measurements.specs:Effects",
    "activations": "interp.measurements.specs:Activations",
    "faithfulness": "interp.cli.study:FAITHFULNESS",
    "run": "interp.cli.study:RUN",
    "train": "interp.cli.train",
    "report": "interp.cli.study:ReportCommand",
    "view": "interp.cli.view:ViewCommand",
    "compare": "interp.cli.compare:CompareCommand",
    "plan": "interp.cli.plan:PlanCommand",
    "status": "interp.cli.folders:StatusCommand",
    "validate": "interp.cli.folders:ValidateCommand",
    "dataset": "interp.cli.prompts:DatasetCommand",
    "export": "interp.cli.prompts:ExportCommand",
    "methods": "interp.cli.listings:MethodsCommand",
    "tables": "interp.cli.listings:TablesCommand",
    "models": "interp.cli.listings:ModelsCommand",
    "help": "interp.cli.listings:HelpCommand",
    "scan": "interp.cli.look:ScanCommand",
    "doctor": "interp.cli.look:DoctorCommand",
    "completion": "interp.cli.listings:CompletionCommand",
    "work": "interp.cli.work:WorkCommand",
}
"""Commands in the order of the help; `find_commands` adds the commands of other entry points."""

USER_ERROR = 2
"""Exit code for a mistake in the input."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

TERMINATED = 143
"""Exit code after SIGTERM, which SLURM and `kill` send."""

READER_GONE = 141
"""Exit code if standard output is no longer read; shells report SIGPIPE by this code."""

LONGEST_MESSAGE = 2000
"""Largest number of characters of an error message; longer ones lose lines or their middle."""


@runtime_checkable
class Command(Protocol):
    """A command: a module or an object with these attributes.

    Optional are EXAMPLES, and RESUMES if the same command goes on where it was stopped.
    """

    HELP: str

    def configure(self, parser: Parser, /) -> None:
        """Add the options of the command."""

    def run(self, arguments: argparse.Namespace, /) -> None:
        """Run the command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    if isinstance(sys.stdout, TextIOWrapper):
        # If the encoding, such as latin-1, lacks a character, write its code point.
        sys.stdout.reconfigure(errors="backslashreplace")
    resumes = False
    try:
        with _interrupted_by_sigterm():
            command, parsed = parse(sys.argv[1:] if arguments is None else arguments)
            resumes = getattr(command, "RESUMES", False)
            _run(command, parsed)
            sys.stdout.flush()
        return 0
    except UserError as error:
        message = shortened_list(printable(str(error)), LONGEST_MESSAGE)
    except KeyboardInterrupt as stop:
        by_signal = isinstance(stop, _TerminatedError)
        how = "terminated by SIGTERM" if by_signal else "interrupted"
        sys.stderr.write(f"{how}{'; rerun the same command to resume' * resumes}\n")
        return TERMINATED if by_signal else INTERRUPTED
    except MemoryError:
        message = (
            "this process ran out of memory; read less at once (--limit, smaller files or "
            "batches), or use a larger machine"
        )
    except BrokenPipeError:
        # The reader of the output, such as `head`, has ended; without this, Python would report an
        # error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:
            message = "cannot write to standard output: no space left"
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        elif _lacks_temporary_folder():
            message = (
                "there is no folder for temporary files, which libraries need; set TMPDIR to a "
                "folder in which files can be written"
            )
        else:
            raise
    sys.stderr.write(f"error: {message}\n")
    return USER_ERROR


def _lacks_temporary_folder() -> bool:
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return True
    return False


class _TerminatedError(KeyboardInterrupt):
    """Raised when SIGTERM arrives, so that the process cleans up as after Ctrl-C."""


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _run(command: "Command", parsed: argparse.Namespace) -> None:
    try:
        command.run(parsed)
    except OptionError as error:
        message = shortened(str(error), LONGEST_MESSAGE)
        raise UserError(with_help(message, parsed.program)) from error


def parse(arguments: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """The command that the arguments (by default --help) name, and its options and command_line."""
    parser, commands = build(arguments)
    parsed = parser.parse_args(arguments or ["--help"])
    parsed.command_line = shlex.join(["interp", *arguments])
    return commands[parsed.command], parsed


def build(
    arguments: Sequence[str], *, configured: Sequence[str] | None = None
) -> tuple[Parser, dict[str, Command]]:
    """The parser of all commands, and the commands by name.

    Adding options is slow, so by default only commands among the arguments are `configured`.
    """
    parser = Parser(prog=program())
    parser.add_argument("--version", action="version", version=f"interp {version('interp')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    by_name = find_commands(*arguments[:1] if configured is None else ())
    if len(by_name) > 1:  # otherwise the page of one command is all that can be asked for
        from interp.cli.help import overview

        parser.page = overview(by_name)
    for name, command in by_name.items():
        examples = getattr(command, "EXAMPLES", ())
        subparser = commands.add_parser(
            name, help=command.HELP, description=command.HELP, examples=examples
        )
        if name in (arguments if configured is None else configured):
            subparser.given = arguments
            subparser.set_defaults(program=subparser.prog)
            command.configure(subparser)
    return parser, by_name


def find_commands(first: str = "") -> dict[str, Command]:
    """Every command by name; commands of other packages come last.

    If `first` is one of the project's own, it is the only one: importing all takes a while.
    """
    if first in COMMANDS and first not in plugins(GROUP):
        return {first: _own(COMMANDS[first])}
    ours = {name: _own(place) for name, place in COMMANDS.items()}
    measurements = {
        name: command
        for name, point in plugins(MEASUREMENTS).items()
        if name not in ours and (command := _of_measurement(point)) is not None
    }
    return ours | measurements | {name: _command(point) for name, point in plugins(GROUP).items()}


def _own(place: str) -> Command:
    target: Any = named(place)
    if isinstance(target, type) and issubclass(target, Spec):
        return MeasureCommand(target)
    command: Command = target
    return command


def _of_measurement(point: EntryPoint) -> Command | None:
    """The command for a registered measurement, unless it has no help or belongs to a group."""
    try:
        spec = spec_named(point.name)
    except UserError as error:
        return _Unusable(point.name, error)
    return MeasureCommand(spec) if spec.help and not spec.group else None


def _command(point: EntryPoint) -> Command:
    """The command of another package or, if it cannot be used, a command that reports why."""
    try:
        command: Any = loaded(point)
        if not isinstance(command, Command):
            raise misfit(point, command, "a module with HELP, configure(parser) and run(arguments)")
    except UserError as error:
        return _Unusable(point.name, error)
    return command


class _Unusable:
    """A stand-in that ends with an error, so that other commands remain usable."""

    HELP = "cannot be loaded"

    def __init__(self, name: str, error: UserError) -> None:
        self._name = name
        self._error = error

    def configure(self, parser: Parser) -> None:
        # The name of one command may also be an argument to another.
        if parser.given[:1] == [self._name]:
            raise self._error

    def run(self, _arguments: argparse.Namespace) -> None:
        raise self._error
