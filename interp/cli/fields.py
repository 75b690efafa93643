"""Flags made from options: an option's type, default and docstring say what its flag takes.

Flags have no defaults: values that are not given are left to the options, or to a YAML file.
"""

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from interp import texts
from interp.cli.parser import Listed
from interp.errors import UserError, unknown
from interp.options import FromText, Options, choices, flag


def add_options(
    parser: argparse._ActionsContainer, options: type[Options], *, without: Sequence[str] = ()
) -> None:
    """Add a flag for each option."""
    for name, field in options.model_fields.items():
        if name not in without:
            parser.add_argument(*_names(name, field), dest=name, **_action(name, field))


def given(
    arguments: argparse.Namespace, options: type[Options], config: Mapping[str, Any]
) -> dict[str, Any]:
    """The options given in a configuration file or by flags, which take precedence."""
    found = {name: config[name] for name in options.model_fields if name in config}
    flags = vars(arguments)
    return found | {name: flags[name] for name in options.model_fields if name in flags}


def options_in(
    config: Mapping[str, Any],
    file: Path | None,
    kinds: Sequence[type[Options]],
    *,
    flags: Mapping[str, str],
    without: Collection[str] = (),
) -> dict[str, Any]:
    """The contents of a configuration file, under the names of options.

    Args:
        config: the contents as the file holds them, under the names of options or of their flags.
        file: the file's path, for messages.
        kinds: the options that the command has.
        flags: the command's further flags, with the name of each among the options.
        without: options for which the command has no flag.

    Raises:
        UserError: the file names an unknown option, or one option under two names.
    """
    fields = {name: field for kind in kinds for name, field in kind.model_fields.items()}
    options = [name for name in fields if name not in without]
    negated = {f"no_{name}": name for name in options if _switches_off(fields[name])}
    names = {name: name for name in [*options, *flags.values()]} | {**flags, **negated}
    found: dict[str, Any] = {}
    spelling: dict[str, str] = {}
    for key, value in config.items():
        if key not in names:
            raise UserError(f"{file}: {unknown('option', key, names)}")
        name = names[key]
        if name in found:
            raise UserError(
                f"{file} gives both {spelling[name]} and {key}, which are the same option; leave "
                "one of them out"
            )
        if key in negated and not isinstance(value, bool):
            raise UserError(f"{file}: {key} is {value!r:.100}; expected true or false")
        found[name] = not value if key in negated else value
        spelling[name] = key
    return found


def _names(name: str, field: FieldInfo) -> list[str]:
    return [flag(f"no_{name}" if _switches_off(field) else name)]


def _switches_off(field: FieldInfo) -> bool:
    """Whether the option's flag switches off a default."""
    return field.annotation is bool and field.default is True


def _action(name: str, field: FieldInfo) -> dict[str, Any]:
    """The arguments that argparse takes for an option."""
    common = {"default": argparse.SUPPRESS, "help": _help(field)}
    if field.annotation is bool:
        return {"action": "store_false" if _switches_off(field) else "store_true", **common}
    read = _reader(name, field)
    metavar = {"metavar": _metavar(field)}
    if _is_tuple(field.annotation):
        return {"nargs": "+", "action": Listed, "type": read, **metavar, **common}
    return {"type": read, **metavar, **common}


def _help(field: FieldInfo) -> str:
    """The field's docstring, with the default if the docstring names none."""
    text = " ".join((field.description or "").split())
    if field.annotation is bool:
        if field.default is True:
            text = f"do not {text}"
    elif field.default is not None and field.default != ():
        value = field.default
        text += f" (default: {' '.join(map(str, value)) if isinstance(value, tuple) else value})"
    return text.replace("%", "%%")


def _metavar(field: FieldInfo) -> str:
    text = _from_text(field)
    if text is not None and text.metavar is not None:
        return text.metavar
    return "N" if _is_whole_number(field.annotation) else "NAME"


def _reader(name: str, field: FieldInfo) -> Callable[[str], Any]:
    """The function that turns a text into the option's value, or into one of its values."""
    known = choices(field.annotation)
    text = _from_text(field)
    if text is not None and not (known and _is_tuple(field.annotation)):
        return text.read
    if known:
        kind = name.removesuffix("s").replace("_", " ")
        one = texts.one_of(kind, known)
        return texts.some_of(kind, known) if _is_tuple(field.annotation) else one
    if _is_whole_number(field.annotation):
        return texts.whole_number(*_bounds(field))
    return str


def _from_text(field: FieldInfo) -> FromText | None:
    inner = [part for item in get_args(field.annotation) for part in _metadata(item)]
    return next((part for part in (*field.metadata, *inner) if isinstance(part, FromText)), None)


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _is_tuple(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_tuple(get_args(annotation)[0])
    return get_origin(annotation) is tuple or any(
        _is_tuple(part) for part in get_args(annotation) if get_origin(annotation) is not tuple
    )


def _is_whole_number(annotation: Any) -> bool:
    return annotation is int or any(_is_whole_number(part) for part in get_args(annotation))


def _bounds(field: FieldInfo) -> tuple[int, int]:
    """The smallest and the largest value that a number may have."""
    found = [*field.metadata]
    for part in get_args(field.annotation):
        for item in _metadata(part):
            found += item.metadata if isinstance(item, FieldInfo) else [item]
    least = next((int(str(part.ge)) for part in found if isinstance(part, Ge)), 0)
    return least, next(
        (int(str(part.le)) for part in found if isinstance(part, Le)), texts.MOST_TOKENS
    )
