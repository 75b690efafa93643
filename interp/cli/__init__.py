"""The command line: one command a file."""

import argparse
import sys
from collections.abc import Sequence

from interp.cli import attribute, dataset, evaluate, models
from interp.errors import UserError

COMMANDS = {
    "attribute": attribute,
    "evaluate": evaluate,
    "dataset": dataset,
    "models": models,
}

USER_ERROR = 2
"""Exit code of a mistake in the input."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m interp",
        description="Attribution and mechanistic interpretability on reasoning prompts in pairs.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.configure(commands.add_parser(name, help=command.HELP, description=command.HELP))
    parsed = parser.parse_args(arguments)
    try:
        COMMANDS[parsed.command].run(parsed)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return USER_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("stopped; the same command goes on where it stopped\n")
        return INTERRUPTED
    return 0
