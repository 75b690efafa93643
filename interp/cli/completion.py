"""`interp completion SHELL`: a script that lets a shell complete commands and options."""

import argparse
import sys

from interp import texts
from interp.errors import UserError

HELP = "print a script by which bash, zsh or tcsh completes commands and options"

EXAMPLES = ("completion bash", "completion zsh")

SHELLS = ("bash", "zsh", "tcsh")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "shell",
        type=texts.one_of("shell", SHELLS),
        metavar="SHELL",
        help=", ".join(SHELLS),
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: shtab is not installed.
    """
    try:
        import shtab
    except ImportError as error:
        raise UserError(
            "completion needs shtab, which is not installed; pip install 'interp[completion]'"
        ) from error
    from interp.cli import build, find_commands

    parser, _ = build((), named=tuple(find_commands()))
    parser.prog = "interp"  # a script completes one program, however it was started
    sys.stdout.write(f"{shtab.complete(parser, shell=arguments.shell)}\n")
