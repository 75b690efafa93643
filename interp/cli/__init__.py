"""The command line: one command a file."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from interp.errors import UserError

COMMANDS = (
    "attribute",
    "evaluate",
    "patch",
    "run",
    "report",
    "status",
    "validate",
    "dataset",
    "models",
    "work",
)
"""The toolkit's own commands, each a module of this package."""

GROUP = "interp.commands"
"""Entry points of this group name modules with further commands, made like those here."""

USER_ERROR = 2
"""Exit code of a mistake in the input."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    command, parsed = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        command.run(parsed)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return USER_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("stopped; the same command goes on where it stopped\n")
        return INTERRUPTED
    return 0


def parse(arguments: Sequence[str]) -> tuple[ModuleType, argparse.Namespace]:
    """The command that arguments name, and its options; `argv` among them are the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m interp",
        description="Attribution and mechanistic interpretability on reasoning prompts in pairs.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    known = find_commands()
    for name, command in known.items():
        command.configure(commands.add_parser(name, help=command.HELP, description=command.HELP))
    parsed = parser.parse_args(arguments)
    parsed.argv = list(arguments)
    return known[parsed.command], parsed


def find_commands() -> dict[str, ModuleType]:
    """Every command by name: a module with HELP, configure(parser) and run(arguments).

    One that measures also has work(arguments), which tells what; workers call it.
    """
    own = {name: import_module(f"interp.cli.{name}") for name in COMMANDS}
    return own | {point.name: point.load() for point in entry_points(group=GROUP)}
