"""The parser class of all commands: each command reports its own mistakes, in one line."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from interp.errors import nearest, shortened, unknown


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line and never passes unknown arguments to its parent."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._examples = examples
        self.given: Sequence[str] = ()
        """The arguments of the command line, on which a command's options may depend."""

    def format_help(self) -> str:
        """The help, with the examples at the end."""
        lines = "".join(f"\n  {program()} {example}" for example in self._examples)
        return super().format_help() + (f"\nexamples:{lines}\n" if lines else "")

    # A single signature cannot override argparse's overloads.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but report an unknown argument here rather than in the parent."""
        given = sys.argv[1:] if args is None else list(args)
        if self._subparsers is None:
            for argument in given:
                self._check_text(argument)
        parsed, rest = super().parse_known_args(given, namespace)
        if rest:
            self.error(self._unknown_argument(rest[0]))
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Print a mistake in one line and exit with code 2."""
        message = " ".join(message.removeprefix("argument ").split())
        self.exit(2, f"error: {with_help(message, self.prog)}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check that a value is one of the choices; otherwise suggest the nearest choice."""
        if action.choices is not None and value not in action.choices:
            kind = str(action.metavar or action.dest).lower()
            raise argparse.ArgumentError(None, unknown(kind, str(value), action.choices))

    def _check_text(self, argument: str) -> None:
        """Reject arguments that would make argparse or the file system fail."""
        if "\0" in argument or any("\ud800" <= letter <= "\udfff" for letter in argument):
            shown = shortened(ascii(argument))
            self.error(f"{shown} holds characters that are not valid UTF-8 text")
        if re.fullmatch(r"--[^=]+=--", argument):
            # argparse drops a value that consists of two dashes.
            self.error(f"{shortened(argument.removesuffix('=--'))}: expected a value, got '--'")

    def _unknown_argument(self, argument: str) -> str:
        name = argument.partition("=")[0]
        if not name.startswith("-"):
            return f"unexpected argument {shortened(argument)!r}"
        near = nearest(name, self._options())
        hint = f"; did you mean {near}?" if near else ""
        return f"unknown option {shortened(name)!r}{hint}"

    def _options(self) -> Iterator[str]:
        for action in self._actions:
            yield from action.option_strings


def with_help(message: str, program: str) -> str:
    """A message about an option, and the command whose help explains the option."""
    return f"{message}{' See' if message.endswith('?') else '; see'} {program} --help"


def program() -> str:
    """How this program was started: by its own name, or as a Python module."""
    as_module = Path(sys.argv[0]).parts[-2:] == ("interp", "__main__.py")
    return "python -m interp" if as_module else "interp"
