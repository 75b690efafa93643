"""Parsers for options given as strings, one for each kind. Invalid strings raise ValueError."""

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date as dates
from pathlib import Path

from interp.choices import DTYPE_ALIASES, DTYPES
from interp.errors import shortened, unknown
from interp.lookalikes import UNREADABLE, is_blank
from interp.plugins import SYSTEMS, plugins

MOST_PAIRS = 10**9
"""The largest value of --limit; `all` has no limit."""

LARGEST_SEED = 2**32 - 1
"""The largest seed that all of our random number generators accept."""

MOST_SHOTS = 64
"""The largest number of demonstrations; tables and figures have a segment for each."""

MOST_WORKERS = MOST_THREADS = 1024

MOST_RANKS = 64
"""The largest number of processes that hold a model together: more than one machine has GPUs."""

MOST_TOKENS = 2**31 - 1
"""The largest value of --batch-tokens."""

MOST_LAYERS = 10_000
"""Upper bound on layer and head numbers."""

DEVICES = ("cpu", "cuda", "mps", "xpu")

_LONGEST_NAME = 255
"""Number of bytes that file systems allow in a name."""

_LONGEST_PATH = 4000
"""Number of bytes that operating systems allow in a path, minus the longest path in a folder."""


def one_of(kind: str, known: Iterable[str]) -> Callable[[str], str]:
    """A parser for a name that must be one of the known names; messages call the name a `kind`."""

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(unknown(kind, text, known))
        return text

    return read


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def numbers(text: str) -> tuple[int, ...]:
    """Numbers and ranges, separated by commas: 0,2,5 or 0-2."""
    listed: list[int] = []
    for part in names(text):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= MOST_LAYERS:
            raise ValueError(
                f"got {shortened(part)!r}, expected numbers such as 0,2,5 or a range such as 0-2"
            )
        listed += range(first, last + 1)
    return tuple(listed)


def limit(text: str) -> int | str:
    """The value of --limit: a number of pairs, or "all"."""
    if text == "all":
        return text
    # Python refuses to convert thousands of digits.
    if not re.fullmatch(r"[0-9]{1,30}", text) or not 1 <= int(text) <= MOST_PAIRS:
        raise ValueError(
            f"got {shortened(text)!r}, expected a whole number from 1 to {MOST_PAIRS:,} pairs, or "
            "all"
        )
    return int(text)


def system(text: str) -> str:
    """The name of an installed system."""
    return one_of("system", plugins(SYSTEMS))(text)


def template(text: str) -> tuple[str, ...]:
    r"""One phrasing of a prompt, in which "\n" stands for a line break (hard to type in shells)."""
    if not text.strip():
        raise ValueError("a template is empty; expected one such as {premise1}\\n{question}")
    return (text.replace("\\n", "\n"),)


def passage(text: str) -> str:
    r"""A text for the model, in which "\n" stands for a line break (hard to type in shells)."""
    if is_blank(text):
        raise ValueError("got an empty text; expected some words, or omit the option")
    if unreadable := UNREADABLE.search(text):
        raise ValueError(f"got the character {unreadable[0]!r}, which no text should hold")
    return text.replace("\\n", "\n")


def real(text: str | float) -> float:
    """A number, nan and inf included; unlike Python's, 1_5 and digits of other scripts are none.

    Raises:
        ValueError: it is not a number.
    """
    if isinstance(text, str) and ("_" in text or not text.isascii()):
        raise ValueError(f"{shortened(text)!r} is no number")
    return float(text)


def number(text: str) -> float:
    """A number, such as 0.7."""
    return _fitting(text, math.isfinite, "a number, such as 0.7")


def share(text: str) -> float:
    """A share between 0 and 1."""
    return _fitting(text, lambda value: 0 <= value <= 1, "a number from 0 to 1")


def _fitting(text: str, fits: Callable[[float], bool], expected: str) -> float:
    """The number in a text, which must fit."""
    with suppress(ValueError):
        if fits(value := real(text)):
            return value
    raise ValueError(f"got {shortened(text)!r}, expected {expected}")


def iso_date(text: str) -> str:
    """A date such as 2024-07-26, unchanged."""
    try:
        dates.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{shortened(text)!r} is not a date such as 2024-07-26") from error
    return text


def dtype(text: str) -> str:
    """A number type, by its full name or by a short name such as fp16."""
    name = DTYPE_ALIASES.get(text, text)
    if name not in DTYPES:
        raise ValueError(unknown("dtype", text, (*DTYPES, *DTYPE_ALIASES)))
    return name


def device(text: str) -> str:
    """A device such as cpu or cuda:1; gpu means cuda."""
    name = re.sub(r"^gpu\b", "cuda", text)
    kind, _, index = name.partition(":")
    if kind not in DEVICES or not re.fullmatch(r"[0-9]{0,3}", index) or name.endswith(":"):
        raise ValueError(f"{unknown('device', text, DEVICES)}; a number may follow, as in cuda:1")
    return name


def path(text: str) -> Path:
    """A path that the file system can hold."""
    if not text:
        raise ValueError("got an empty name, expected a file or a folder")
    longest = max(len(part.encode()) for part in text.split("/"))
    if longest > _LONGEST_NAME or len(text.encode()) > _LONGEST_PATH:
        raise ValueError(
            f"{shortened(text)!r} is too long for the file system; expected at most "
            f"{_LONGEST_NAME} bytes per name"
        )
    return Path(text)


def name(text: str) -> str:
    """A path that may also be a name on the hub, unchanged."""
    path(text)
    return text


def folder(text: str) -> Path:
    """A folder that exists or can be created."""
    place = path(text)
    nearest = next((part for part in (place, *place.parents) if part.exists()), place)
    if nearest.exists() and not nearest.is_dir():
        raise ValueError(f"{shortened(str(nearest))!r} is a file; expected a folder")
    return place


def server(text: str) -> str:
    """The address of a server."""
    if not re.fullmatch(r"https?://[\w.\-\[\]:]{1,255}(/[\w./~\-]{0,255})?", text, re.ASCII):
        raise ValueError(
            f"{shortened(text)!r} is not the address of a server, such as http://127.0.0.1:8000/v1"
        )
    return text


def slurm_option(text: str) -> str:
    """A SLURM option with its value, such as gpus_per_node=1."""
    option, sign, value = text.partition("=")
    if not option or not sign:
        raise ValueError(
            f"{shortened(text)!r} is not an option such as partition=gpu or gpus-per-node=1"
        )
    if not text.isprintable():
        # A line break would start a new line in the job's script.
        raise ValueError(f"{shortened(text)!r} holds a line break or a control character")
    return f"{option.removeprefix('--').replace('-', '_')}={value}"
