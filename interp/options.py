"""Options as data: each field of a frozen class defines a flag, a YAML key and an argument.

A field's type and docstring document the option in all three (`interp.cli.fields` derives flags);
records store values as JSON. Flags are strings; only the classes here turn them into values.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc, signature
from itertools import chain
from textwrap import fill
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import pydantic
from annotated_types import Ge, Gt, Le
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from interp.errors import UserError, described, shortened, unknown

_OPTIONS_ENTRY = re.compile(r"^    \*\*options: .*\n", re.MULTILINE)
P = ParamSpec("P")
R = TypeVar("R")


class OptionError(UserError):
    """An option is unknown, missing, or has an invalid value."""


class Options(pydantic.BaseModel):
    """A group of options. Two groups are equal if all their options are.

    Raises:
        OptionError: an option is unknown, missing, or has an invalid value.
    """

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: pydantic.ModelWrapValidatorHandler["Options"]) -> Any:
        if isinstance(given, Mapping):
            fields = cls.model_fields
            given = {
                name: _of_text(fields[name], value) if name in fields else value
                for name, value in given.items()
            }
        try:
            return handler(given)
        except pydantic.ValidationError as error:
            raise OptionError(_explained(cls, error)) from None

    def as_json(self) -> dict[str, JsonValue]:
        """Every option with its value in JSON form."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class FromText:
    """Marker of a field whose value may be a string, in a flag, in YAML or in Python."""

    read: Callable[[str], Any]
    """Function that parses a string into one value or a tuple; raises ValueError if invalid."""
    metavar: str | None = None
    """Name of the value in the help."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return pydantic.BeforeValidator(self._value).__get_pydantic_core_schema__(source, handler)

    def _value(self, given: Any) -> Any:
        if not isinstance(given, tuple):
            return self.read(given) if isinstance(given, str) else given
        values = tuple(self.read(part) if isinstance(part, str) else part for part in given)
        if any(isinstance(value, tuple) for value in values):
            several = (value if isinstance(value, tuple) else (value,) for value in values)
            return tuple(dict.fromkeys(chain.from_iterable(several)))
        return values


@dataclass(frozen=True)
class Flag:
    """Marker of a field that has no flag, or whose flag has another name than the field."""

    name: str
    """The flag's name without dashes; for a positional value, its name in the help."""
    positional: bool = False


def choices(annotation: Any) -> tuple[str, ...]:
    """The values of a Literal, also within a tuple or a union; none for other types."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in choices(part))


def marks(field: FieldInfo) -> Iterator[Any]:
    """The metadata of a field, and of the types nested in its type."""
    yield from field.metadata
    yield from _marks_within(field.annotation)


def _marks_within(annotation: Any) -> Iterator[Any]:
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        for mark in inner[1:]:
            yield from mark.metadata if isinstance(mark, FieldInfo) else [mark]
        inner = inner[:1]
    for part in inner:
        yield from _marks_within(part)


def is_tuple(annotation: Any) -> bool:
    """Whether a type is a tuple, or a union with a tuple."""
    origin = get_origin(annotation)
    return origin is tuple or (origin is not Literal and any(map(is_tuple, get_args(annotation))))


def takes(annotation: Any, kind: type) -> bool:
    """Whether a type is `kind` or contains it, as a union or a tuple does."""
    return annotation is kind or any(takes(part, kind) for part in get_args(annotation))


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def with_options_of(options: type[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add the names, defaults and documentation of options to a function with `**options`.

    In the function's signature and docstring, the options replace `**options`.
    """

    def documented(call: Callable[P, R]) -> Callable[P, R]:
        kept = [p for p in signature(call).parameters.values() if p.kind != Parameter.VAR_KEYWORD]
        fields = options.model_fields.items()
        # Use plain types, without the bounds that pydantic checks.
        types = get_type_hints(options)
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[name])
            for name, field in fields
        ]
        # Type checkers do not know that functions can have `__signature__`.
        call.__signature__ = Signature([*kept, *added])  # type: ignore[attr-defined]
        entries = "".join(
            fill(
                f"{name}: {' '.join((field.description or '').split())}",
                92,
                initial_indent=" " * 4,
                subsequent_indent=" " * 8,
            )
            + "\n"
            for name, field in fields
        )
        call.__doc__ = _OPTIONS_ENTRY.sub(lambda _: entries, cleandoc(call.__doc__ or ""))
        return call

    return documented


def _of_text(field: FieldInfo, value: Any) -> Any:
    """A value as pydantic expects it: YAML and JSON have only lists, and flags only strings."""
    if isinstance(value, list | range):
        value = tuple(value)
    if isinstance(value, bool) and {"off", "on"} <= {*choices(field.annotation)}:
        return "on" if value else "off"  # what on and off without quotes are in YAML
    reads = any(isinstance(mark, FromText) for mark in marks(field))
    if is_tuple(field.annotation):
        value = (value,) if isinstance(value, str) else value
        if not reads and choices(field.annotation) and isinstance(value, tuple):
            parts = [part.split(",") if isinstance(part, str) else [part] for part in value]
            value = tuple(dict.fromkeys(part for words in parts for part in words if part))
    elif not reads and isinstance(value, str) and takes(field.annotation, int):
        # Python refuses to convert thousands of digits, but a number that long exceeds every bound.
        return int(value) if re.fullmatch(r"[+-]?[0-9]{1,30}", value) else value
    return value


def _explained(options: type[Options], error: pydantic.ValidationError) -> str:
    """The first problem, on one line that begins with the option's name."""
    problem = error.errors(include_url=False, include_context=True)[0]
    name = str(problem["loc"][0]) if problem["loc"] else options.__name__
    kind, field = problem["type"], options.model_fields.get(name)
    if kind == "extra_forbidden" or field is None:
        message = f"got {described(problem['input'], 100)}; expected text, or the options "
        fields = options.model_fields
        return unknown("option", name, fields) if problem["loc"] else message + ", ".join(fields)
    known = choices(field.annotation)
    name = next((m.name.lower() for m in field.metadata if isinstance(m, Flag)), name)
    what = name.removesuffix("s").replace("_", " ")
    if kind == "missing":
        return f"{flag(name)} is missing: {' '.join((field.description or '').split())}"
    if kind == "too_short":
        hint = f"expected some of {', '.join(known)}" if known else f"omit {name} to use all"
        return f"no {what} given; {hint}"
    if kind == "literal_error":
        return unknown(what, str(problem["input"]), known)
    reason = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected", 1)
    reason = reason.replace("a valid tuple", "a list").replace(
        "String should", "expected a text to"
    )
    if kind == "value_error" and not reason.startswith("expected"):
        return reason if reason.startswith(("unknown", "no ")) else f"{name}: {reason}"
    beyond = kind.startswith(("greater", "less")) and all(_bounds(field))
    of_type = kind in ("string_type", "bool_type", "is_instance_of")
    if of_type or ((beyond or kind.startswith("int_")) and takes(field.annotation, int)):
        reason = f"expected {accepted(field)}"
    got = problem["input"]
    shown = (
        " ".join(got) if isinstance(got, tuple) and all(isinstance(g, str) for g in got) else got
    )
    return f"{name} is {shortened(repr(shown), 100)}: {reason[0].lower()}{reason[1:]}"


def accepted(field: FieldInfo) -> str:
    """The values that an option accepts, such as "a whole number from 1 to 1,000, or all"."""
    kinds = {int: "a whole number", float: "a number"}
    named = next((words for kind, words in kinds.items() if takes(field.annotation, kind)), "text")
    known = ", ".join(map(str, choices(field.annotation)))
    if known and named == "text":
        return f"one of {known}"
    if field.annotation is bool:
        return "true or false"
    least, most = _bounds(field)
    if least and most:
        return f"{named} from {least} to {most}{f', or {known}' * bool(known)}"
    above = "".join(f" above {mark.gt:,}" for mark in marks(field) if isinstance(mark, Gt))
    return f"{named} of at least {least}" if least else f"{named}{above}"


def _bounds(field: FieldInfo) -> tuple[str, str]:
    """The smallest and the largest value of an option; empty if it declares none."""
    least = [f"{mark.ge:,}" for mark in marks(field) if isinstance(mark, Ge)]
    most = [f"{mark.le:,}" for mark in marks(field) if isinstance(mark, Le)]
    return "".join(least[:1]), "".join(most[:1])
