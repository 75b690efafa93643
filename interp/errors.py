"""The error class for invalid input, and the wording of its messages."""

from collections.abc import Iterable
from difflib import get_close_matches
from traceback import extract_tb
from typing import TYPE_CHECKING

from interp.lookalikes import lookalike

if TYPE_CHECKING:
    from pydantic import ValidationError

QUOTED = 200
"""Maximum number of characters that a message repeats from the input."""

QUOTED_IN_LINE = 80
"""Maximum number of characters in a name or a reason within a sentence."""


MANY = 12
"""Above this number, valid names are listed only if none of them is close to the given one."""


class UserError(Exception):
    """A mistake in the input; the message states the wrong value, valid values and the next step.

    Control and invisible characters in the message are escaped. The command line prints it as one
    message, without a traceback, and exits with code 2.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the message, and the line of the cell."""
        frames = [frame for frame in extract_tb(self.__traceback__) if frame.name == "<module>"]
        where = [f"  (line {frame.lineno} of the cell: {frame.line})" for frame in frames[-1:]]
        return [f"{type(self).__name__}: {self}", *where]


class ModelError(UserError):
    """A mistake in the choice of the model, because of which every prompt would fail."""


def shortened(text: str, most: int = QUOTED) -> str:
    """The text, without its middle if it has more than `most` characters."""
    if len(text) <= most:
        return text
    kept = (most - 3) // 2
    return f"{text[:kept]}...{text[-kept:]}"


def shortened_list(text: str, most: int) -> str:
    """A text of at most `most` characters; whole lines of its list are left out, and counted."""
    lines = text.split("\n")
    items = [place for place, line in enumerate(lines) if line.startswith("  ")]
    beyond = (len(text) + len("  ... and 1,000,000 more") - most) * (len(text) > most)
    left_out = 0
    while len(items) > 1 and beyond > 0:
        place = items.pop()
        beyond -= len(lines.pop(place)) + 1
        left_out += 1
    if left_out:
        lines.insert(place, f"  ... and {left_out:,} more")
    return shortened("\n".join(lines), most)


def described(value: object, most: int = QUOTED) -> str:
    """A value and its type, for a message about a wrong value; a table's type alone."""
    shown = repr(value)
    return kind_of(value) if "\n" in shown else f"{shortened(shown, most)}, {kind_of(value)}"


def kind_of(value: object) -> str:
    """The type of a value with its article, such as "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


def fault_of(error: "ValidationError") -> str:
    """The first field of a record that does not fit its schema, and why."""
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part)[:60] for part in problem["loc"]) or "the whole"
    return f"{one_line(place, 160)}: {one_line(problem['msg'], 160)}"


def one_line(text: str, most: int = QUOTED_IN_LINE) -> str:
    """The text on one line, shortened, with control characters escaped."""
    return shortened(" ".join(printable(text).split()), most)


def visible(text: str) -> str:
    r"""The text; one of white space alone, which nobody sees, as in source code, such as "\n"."""
    if not text.isspace():
        return text
    return "".join("␣" if letter == " " else repr(letter)[1:-1] for letter in text)


def unknown(kind: str, got: str, known: Iterable[str]) -> str:
    """The message for an unknown name, with the closest valid name, all valid names, or both."""
    names = list(known)
    if alike := lookalike(got, names):
        return f"unknown {kind} {shortened(got)!r}; {alike}"
    near = nearest(got, names)
    hint = f"did you mean {near}? " if near else ""
    if near and len(names) > MANY:
        return f"unknown {kind} {shortened(got)!r}; did you mean {near}?"
    listed = f"expected one of {', '.join(names)}" if names else "none is known"
    return f"unknown {kind} {shortened(got)!r}; {hint}{listed}"


def nearest(got: str, known: Iterable[str]) -> str | None:
    """The known name closest to the given name, if any is close."""
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(got.lower()[:QUOTED], by_lower, n=1)
    return by_lower[close[0]] if close else None


def printable(text: str) -> str:
    """The text with control characters escaped, so they cannot affect a terminal."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text
    )
