"""The parser class of all commands: each command reports its own mistakes, in one line."""

import argparse
import re
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, NoReturn

from interp.errors import nearest, shortened, unknown

FIRST = {
    *("--model", "--device", "--system", "--data", "--limit"),
    *("--shots", "--answer-prefix", "--out"),
}
"""The options of models, prompts and runs that a first user needs."""

SHARED = ("models", "model", "prompts", "run", "workers")
"""The groups that many commands have; of other groups, the first options are shown first."""

OWN = 5
"""Number of a command's own options that its help shows first."""

MANY = 16
"""Number of options above which a command's help shows only the first ones."""


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line and never passes unknown arguments to its parent."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.add_argument("--help-all", action="help", help=argparse.SUPPRESS)
        self._examples = examples
        self.whole = False
        self.page = ""
        """The help, if it is not made of the options."""
        self.given: Sequence[str] = ()
        """The arguments of the command line, on which a command's options may depend."""

    def format_help(self) -> str:
        """The help with the examples at the end; of many options, those that come first."""
        if self.page:
            return self.page
        count = sum(action.help != argparse.SUPPRESS for action in self._actions)
        whole = self.whole or count <= MANY
        text = super().format_help() if whole else self._first_help(count)
        lines = "".join(f"\n  {program()} {example}" for example in self._examples)
        return text + (f"\nexamples:{lines}\n" if lines else "")

    def _first_help(self, count: int) -> str:
        formatter = self._get_formatter()
        positional = [action for action in self._actions if not action.option_strings]
        formatter.add_usage("%(prog)s [options]", positional, [])
        formatter.add_text(self.description)
        for group in self._action_groups:
            args = [arg for arg in group._group_actions if arg.help != argparse.SUPPRESS]
            ahead = () if group.title in SHARED else args[:OWN]
            shown = [arg for arg in args if arg in ahead or FIRST & {*arg.option_strings}]
            formatter.start_section(group.title)
            formatter.add_arguments([_briefly(arg) for arg in shown])
            formatter.end_section()
        return formatter.format_help() + f"\n{self.prog} --help-all shows all {count} options\n"

    # A single signature cannot override argparse's overloads.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but report an unknown argument here rather than in the parent."""
        words = sys.argv[1:] if args is None else list(args)
        self.whole = "--help-all" in words
        if self._subparsers is None:
            for argument in words:
                self._check_text(argument)
        parsed, rest = super().parse_known_args(words, namespace)
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
        near = nearest(name, [flag for action in self._actions for flag in action.option_strings])
        hint = f"; did you mean {near}?" if near else ""
        return f"unknown option {shortened(name)!r}{hint}"


def _briefly(action: argparse.Action) -> argparse.Action:
    """An option with the first clause of its help."""
    brief = copy(action)
    brief.help = re.split(r"; |\.\s(?=[A-Z])| \(|(?<=.{15}): ", action.help or "")[0]
    return brief


def with_help(message: str, program: str) -> str:
    """A message about an option, and the command whose help explains the option."""
    return f"{message}{' See' if message.endswith('?') else '; see'} {program} --help"


def program() -> str:
    """How this program was started: by its own name, or as a Python module."""
    as_module = Path(sys.argv[0]).parts[-2:] == ("interp", "__main__.py")
    return "python -m interp" if as_module else "interp"
