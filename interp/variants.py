"""Methods with options, written NAME:OPTION=VALUE, such as integrated_gradients:steps=50.

Further options follow after another colon (captum:lime:samples=256:penalty=0.1). In Python and in
YAML, a mapping says the same: {"captum:lime": {"samples": 256, "penalty": 0.1}}. The label of a
variant is this text without options that have their default, in the order in which the method
declares them. Tables and records call the variant by its label, so the same method with other
options is another method there.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from interp import texts
from interp.errors import UserError, kind_of, shortened, unknown
from interp.options import FromText, OptionError, Options, takes

_OPTION = re.compile(r"([A-Za-z_]\w*)=([^\s:=,]+)")

WRITTEN = "NAME[:OPTION=VALUE]"
"""How help texts write the grammar."""


class NoOptions(Options):
    """The options of a method that has none."""


@dataclass(frozen=True)
class Variants:
    """Methods of one kind, each with options of its own.

    Every call raises a UserError if a name or an option is unknown or a value is invalid.
    """

    kind: str
    """What messages call the methods, such as "method"."""
    known: Callable[[], Sequence[str]]
    """The names of all methods."""
    options_of: Callable[[str], type[Options]]
    """The options that the method with a name declares."""

    def parsed(self, label: str) -> tuple[str, Options]:
        """The name and the options of the variant with this label."""
        name, *parts = _parts(label)
        self._check(label, name)
        declared = self.options_of(name)
        values: dict[str, str] = {}
        for part in parts:
            match = _OPTION.fullmatch(part)
            if match is None:
                raise UserError(
                    f"{shortened(part)!r} in {shortened(label)!r} is not an option with its value; "
                    f"expected {WRITTEN}, such as {_example(name, declared)}"
                )
            option, value = match.groups()
            if option in values:
                raise UserError(f"{shortened(label)!r} gives the option {option} twice; omit one")
            values[option] = value
        if values and not declared.model_fields:
            raise UserError(
                f"the {self.kind} {name} has no options, but got {shortened(':'.join(parts))!r}; "
                "omit it"
            )
        try:
            return name, declared(**{n: _typed(declared, n, text) for n, text in values.items()})
        except OptionError as error:
            raise OptionError(f"the {self.kind} {name}: {error}") from error

    def label(self, text: str) -> str:
        """The label of the variant that a text or another label describes."""
        name, options = self.parsed(text)
        declared = type(options).model_fields
        chosen = [
            f"{option}={written(value)}"
            for option, value in options
            if value != declared[option].default
        ]
        return ":".join([name, *chosen])

    def some(self, text: str) -> tuple[str, ...]:
        """The labels in an option's text, which separates variants by commas."""
        return tuple(map(self.label, texts.names(text)))

    def _check(self, label: str, name: str) -> None:
        """Check that a name is known."""
        known = self.known()
        if name in known:
            return
        if not name:
            raise UserError(
                f"{shortened(label)!r} names no {self.kind}; options follow the name after a "
                f"colon, as in {WRITTEN}, and each further option after another colon"
            )
        ending = [other for other in known if other.endswith(f":{name}")]
        if len(ending) == 1:
            raise UserError(f"unknown {self.kind} {shortened(name)!r}; did you mean {ending[0]}?")
        for other in known:
            if name.startswith(f"{other}:"):
                rest = name.removeprefix(f"{other}:")
                raise UserError(
                    f"{shortened(rest)!r} after {other} is not an option with its value; expected "
                    f"{WRITTEN}, such as {_example(other, self.options_of(other))}"
                )
        raise UserError(unknown(self.kind, name, known))


@dataclass(frozen=True)
class FromVariants(FromText):
    """Marker of a field with labels, which may be given as texts or as mappings."""

    variants: Variants | None = None
    """The methods that the field accepts."""

    def _value(self, given: Any) -> Any:
        if isinstance(given, Mapping | tuple):
            parts = given if isinstance(given, tuple) else (given,)
            given = tuple(text for part in parts for text in self._texts(part))
        try:
            labels = super()._value(given)
        except OptionError:
            raise
        except UserError as error:
            raise OptionError(str(error)) from error
        if labels == ():
            assert self.variants is not None
            known = ", ".join(self.variants.known())
            raise OptionError(f"no {self.variants.kind} given; expected one or more of {known}")
        return labels

    def _texts(self, part: Any) -> Iterator[Any]:
        """Each entry of a mapping of names to options, as text; anything else unchanged."""
        if not isinstance(part, Mapping):
            yield part
            return
        for name, options in part.items():
            if not isinstance(options, Mapping | None):
                raise UserError(
                    f"the options of {shortened(str(name))} are {kind_of(options)}; expected a "
                    "mapping, such as {'steps': 50}"
                )
            chosen = [f"{option}={written(value)}" for option, value in (options or {}).items()]
            for text in chosen:
                if not _OPTION.fullmatch(text):
                    raise UserError(
                        f"{shortened(text)!r} is not an option of {shortened(str(name))} with its "
                        "value; expected a number, true, false or one word"
                    )
            yield ":".join([str(name), *chosen])


def name_of(label: str) -> str:
    """The name of the method in a label."""
    return _parts(label)[0]


def _parts(label: str) -> list[str]:
    """The name, which may contain colons, and each text from the first with "=" on."""
    parts = [part.strip() for part in label.split(":")]
    first = next((place for place, part in enumerate(parts) if "=" in part), len(parts))
    return [":".join(parts[:first]), *parts[first:]]


def _example(name: str, declared: type[Options]) -> str:
    """A text of the grammar with one of the method's options, or of another if it has none."""
    for option, field in declared.model_fields.items():
        return f"{name}:{option}={written(field.default)}"
    return f"integrated_gradients:steps=50 ({name} has no options)"


def written(value: Any) -> str:
    """A value as texts write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(declared: type[Options], option: str, text: str) -> Any:
    """A text as the type that its option takes; unchanged if it cannot be or needs not be read."""
    field: FieldInfo | None = declared.model_fields.get(option)
    if field is None:
        return text
    if takes(field.annotation, bool):
        return {"true": True, "false": False}.get(text, text)
    if takes(field.annotation, float):
        with suppress(ValueError):
            return texts.number(text)
    return text
