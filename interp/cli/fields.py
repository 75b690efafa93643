"""Flags derived from options: each flag is defined by its option's type, default and docstring.

argparse only splits the command line into words; the options parse them. Flags have no defaults:
missing values come from a YAML file or from the options' own defaults.
"""

import argparse
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic.fields import FieldInfo

from interp import texts
from interp.cli.parser import Parser
from interp.errors import UserError, unknown
from interp.options import Flag, FromText, Options, flag, is_tuple, marks, takes
from interp.plugins import load_plugin, plugins

Folder = Annotated[Path, FromText(texts.path, "DIR"), Flag("DIR", positional=True)]
"""The folder that a command inspects."""


class OptionsCommand(Options):
    """A command whose flags are these options; its docstring is its help."""

    HELP: ClassVar[str]
    EXAMPLES: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        doc = " ".join((cls.__doc__ or "").split())
        cls.HELP = f"{doc[:1].lower()}{doc[1:]}".removesuffix(".")

    @classmethod
    def configure(cls, parser: Parser) -> None:
        """Add the options of the command."""
        add_options(parser, cls)

    @classmethod
    def run(cls, arguments: argparse.Namespace) -> None:
        """Run the command."""
        cls(**given(arguments, cls))._execute()

    @abstractmethod
    def _execute(self) -> None:
        """Execute the command."""


class Configuration(Options):
    """The option of commands that read a YAML file."""

    config: Annotated[Path | None, FromText(texts.path, "FILE")] = None
    """YAML file of options, named like their flags; flags override it"""


def configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options in the configuration file, which is read only once; empty if there is no file."""
    read: dict[str, Any] | None = getattr(arguments, "configured", None)
    if read is not None:
        return read
    file = Configuration(**given(arguments, Configuration)).config
    if file is None:
        return {}
    from interp.cli.config_file import config_file  # importing yaml is slow

    return config_file(file)


def add_options(
    parser: argparse._ActionsContainer, options: type[Options], *, without: Collection[str] = ()
) -> None:
    """Add a flag for each option."""
    for name, field in options.model_fields.items():
        if name in without:
            continue
        common: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(field)}
        mark = next((mark for mark in field.metadata if isinstance(mark, Flag)), None)
        several = is_tuple(field.annotation)
        if mark and mark.positional:
            nargs = None if field.is_required() else "?"
            if several:
                nargs = "+" if field.is_required() else "*"
            parser.add_argument(name, nargs=nargs, metavar=mark.name, **common)
        elif field.annotation is bool:
            action = "store_false" if _switches_off(field) else "store_true"
            negated = f"no_{name}" if _switches_off(field) else name
            parser.add_argument(flag(negated), dest=name, action=action, **common)
        else:
            words: dict[str, Any] = {"nargs": "+", "action": "extend"} if several else {}
            flag_name = flag_of(options, name)
            metavars = [mark.metavar for mark in marks(field) if isinstance(mark, FromText)]
            default = "N" if takes(field.annotation, int) else "NAME"
            metavar = next(filter(None, metavars), default)
            parser.add_argument(flag_name, dest=name, metavar=metavar, **words, **common)


def flag_of(options: type[Options], name: str) -> str:
    """The flag of an option, which may have another name than the field."""
    marks = options.model_fields[name].metadata
    return flag(next((mark.name for mark in marks if isinstance(mark, Flag)), name))


def given(
    arguments: argparse.Namespace, options: type[Options], config: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The options set in a configuration file or by flags; flags take precedence."""
    settings = {**(config or {}), **vars(arguments)}
    return {name: settings[name] for name in options.model_fields if name in settings}


def options_in(
    arguments: argparse.Namespace,
    kinds: Sequence[type[Options]],
    *,
    others: Collection[str] = (),
    without: Collection[str] = (),
) -> dict[str, Any]:
    """The contents of a configuration file, by the Python names of the options.

    The file, which the command line may name, sets options by their names or flags. `others` are
    names that other code reads, such as the name of a study; those in `without` have no flags.

    Raises:
        UserError: the file sets an unknown option, one option under two names, or an empty list.
    """
    read, file = configuration(arguments), getattr(arguments, "config", None)
    if not read:
        return {}
    fields = {name: field for kind in kinds for name, field in kind.model_fields.items()}
    negated = {f"no_{n}": n for n in fields if n not in without and _switches_off(fields[n])}
    names = {name: name for name in (*fields, *others) if name not in without} | negated
    for name, field in fields.items():
        names |= {mark.name: name for mark in field.metadata if isinstance(mark, Flag)}
    settings: dict[str, Any] = {}
    spelling: dict[str, str] = {}
    for written, value in read.items():
        key = written.replace("-", "_")
        if key not in names:
            raise UserError(f"{file}: {unknown('option', key, names)}")
        name = names[key]
        if name in settings:
            raise UserError(
                f"{file} gives both {spelling[name]} and {written}, which are the same option; "
                "omit one of them"
            )
        if key in negated and not isinstance(value, bool):
            raise UserError(f"{file}: {key} is {value!r:.100}; expected true or false")
        if value == []:
            raise UserError(f"{file}: {written} is an empty list; fill it, or omit {written}")
        settings[name] = not value if key in negated else value
        spelling[name] = written
    return settings


def _switches_off(field: FieldInfo) -> bool:
    """Whether the option's flag turns off something that is on by default."""
    return field.annotation is bool and field.default is True


def _help(field: FieldInfo) -> str:
    """The field's docstring, with the default if the docstring does not mention it."""
    text = " ".join((field.description or "").split())
    if field.annotation is bool:
        text = f"do not {text}" if _switches_off(field) else text
    elif not field.is_required() and field.default not in (None, ()):
        value = field.default
        text += f" (default: {' '.join(map(str, value)) if isinstance(value, tuple) else value})"
    return text.replace("%", "%%")


@dataclass(frozen=True)
class Choice:
    """A choice among plugins, such as studies, on the command line or in the configuration file."""

    key: str
    """Name of the choice among the arguments and in the configuration file, such as "study"."""
    kind: str
    """Name of the choice in messages, such as "training task"."""
    group: str

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
            names = ", ".join(plugins(self.group))
            raise UserError(f"got no {self.key}; expected one of {names}")
        return name
