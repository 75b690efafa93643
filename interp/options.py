"""Options as data: one frozen class defines flags, YAML keys and arguments.

A field's type and docstring are its documentation everywhere: `interp.cli.fields` makes flags from
them, `--config` reads them from YAML, Python gives them by name, and records hold them as JSON.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import fill
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from interp.errors import UserError, shortened, unknown

_OPTIONS_ENTRY = re.compile(r"^    \*\*options: .*\n", re.MULTILINE)
P = ParamSpec("P")
R = TypeVar("R")


class Options(BaseModel):
    """A group of options. Two groups are equal if all their options are.

    Raises:
        UserError: an option is unknown, or has an invalid value.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _refused_in_words(cls, given: Any, handler: ModelWrapValidatorHandler["Options"]) -> Any:
        if isinstance(given, Mapping):
            # YAML and JSON have only lists.
            given = {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
        try:
            return handler(given)
        except ValidationError as error:
            raise UserError(_explained(cls, error)) from None

    def as_json(self) -> dict[str, JsonValue]:
        """Every option with its value, as JSON holds it."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class FromText:
    """Marks a field whose value may be given as text, by a flag, in YAML or in Python."""

    read: Callable[[str], Any]
    """The value of a text; raises ValueError for an invalid text."""
    metavar: str | None = None
    """Name of the value in the help."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return BeforeValidator(self._value).__get_pydantic_core_schema__(source, handler)

    def _value(self, given: Any) -> Any:
        return self.read(given) if isinstance(given, str) else given


def choices(annotation: Any) -> tuple[str, ...]:
    """The values of a Literal, also within a tuple or a union; none for other types."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in choices(part))


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def with_options_of(options: type[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a call that takes `**options` the names, defaults and documentation of the options.

    In the call's signature and docstring, the options replace `**options`.
    """

    def documented(call: Callable[P, R]) -> Callable[P, R]:
        own = [p for p in signature(call).parameters.values() if p.kind != Parameter.VAR_KEYWORD]
        fields = options.model_fields.items()
        # Plain types, without the bounds that pydantic checks.
        types = get_type_hints(options)
        given = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[name])
            for name, field in fields
        ]
        # By their types, functions have no such attribute.
        call.__signature__ = Signature([*own, *given])  # type: ignore[attr-defined]
        described = "".join(_entry(name, field) for name, field in fields)
        call.__doc__ = _OPTIONS_ENTRY.sub(lambda _: described, cleandoc(call.__doc__ or ""))
        return call

    return documented


def _entry(name: str, field: FieldInfo) -> str:
    """An argument's entry in a docstring."""
    text = " ".join(_what(field).split())
    return fill(f"{name}: {text}", 92, initial_indent=" " * 4, subsequent_indent=" " * 8) + "\n"


def _explained(options: type[Options], error: ValidationError) -> str:
    """The first problem, in one line that names the option."""
    problem = error.errors(include_url=False, include_context=True)[0]
    name = str(problem["loc"][0]) if problem["loc"] else options.__name__
    got = problem["input"]
    field = options.model_fields.get(name)
    if problem["type"] == "extra_forbidden":
        return unknown("option", name, options.model_fields)
    if problem["type"] == "missing":
        return f"{options.__name__} needs {name}: {_what(field)}"
    if problem["type"] == "too_short" and field is not None:
        known = choices(field.annotation)
        hint = f"expected some of {', '.join(known)}" if known else f"leave {name} out to take all"
        return f"no {name.removesuffix('s')} given; {hint}"
    if problem["type"] == "literal_error" and field is not None:
        return unknown(name, str(got), choices(field.annotation))
    reason = problem["msg"].removeprefix("Value error, ")
    return f"{name} is {shortened(repr(got), 100)}: {reason[0].lower()}{reason[1:]}"


def _what(field: FieldInfo | None) -> str:
    return (field.description or "") if field else ""
