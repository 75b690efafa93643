"""Commands that take the name of a plugin, such as a study, and the plugin's options."""

import argparse
from contextlib import suppress
from dataclasses import dataclass

from interp.cli.fields import configuration
from interp.cli.parser import Parser
from interp.errors import UserError
from interp.options import Options
from interp.plugins import load_plugin, plugins


@dataclass(frozen=True)
class Choice:
    """A choice among plugins, made on the command line or in the configuration file."""

    key: str
    """Name of the choice among the arguments and in the configuration file, such as "study"."""
    kind: str
    """Name of the choice in messages, such as "training task"."""
    group: str
    """The entry points to choose from."""

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the argument for the name of the plugin."""
        names = tuple(plugins(self.group))
        help_ = f"{', '.join(names)}; may be set in a configuration file"
        metavar = self.key.upper()
        parser.add_argument(self.key, nargs="?", choices=names, metavar=metavar, help=help_)

    def options(self, parser: Parser) -> type[Options]:
        """The options of the plugin named on the command line; empty if no plugin is named.

        A configuration file read here remains available to `configuration`.
        """
        names = plugins(self.group)
        first = argparse.ArgumentParser(add_help=False, exit_on_error=False)
        first.add_argument("--config")
        # Until the flags are known, the value of a flag cannot be told from a plugin's name.
        name = next((word for word in parser.given if word in names), None)
        with suppress(argparse.ArgumentError, UserError):
            arguments = first.parse_known_args(parser.given)[0]
            arguments.configured = configuration(arguments)
            parser.set_defaults(configured=arguments.configured)
            name = self.name(argparse.Namespace(**{self.key: name}, **vars(arguments)))
        if name not in names:
            return Options
        options: type[Options] = load_plugin(self.group, self.kind, name)
        return options

    def name(self, arguments: argparse.Namespace) -> str:
        """The name of the plugin.

        Raises:
            UserError: no plugin is named.
        """
        name = getattr(arguments, self.key) or configuration(arguments).get(self.key)
        if not isinstance(name, str):
            known = ", ".join(plugins(self.group))
            raise UserError(f"got no {self.key}; expected one of {known}")
        return name
