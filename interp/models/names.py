"""Names of models: what a user asks for, and what tables call it."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from interp.errors import UserError, printable, shortened
from interp.models.packaged import ORGANISMS, packaged
from interp.options import Options
from interp.plugins import FORMATS, plugins
from interp.texts import path

LONGEST_PLACE = 4096
"""Maximum number of characters in a model's name, which may be a whole path."""

LONGEST_NAME = 200
"""Maximum number of characters in a name that a user gives to a model."""

_UNTELLING = re.compile("snapshots|[0-9a-f]{40}|[0-9a-f]{64}")
"""Parts of a path that say nothing to a reader, as in models--org--name/snapshots/HASH."""


def is_local(name: str) -> bool:
    """Whether a model's name refers to a local folder, or to a file that is a whole model."""
    # Path.is_dir raises an error for a name that is too long or not allowed for files.
    return os.path.isdir(name) or is_model_file(name)  # noqa: PTH112


def is_model_file(name: str) -> bool:
    """Whether a model's name refers to a file that is a whole model, such as a GGUF file."""
    return format_name(name) is not None and os.path.isfile(name)  # noqa: PTH113


def format_name(name: str) -> str | None:
    """The format of files with this name, such as "gguf"; None if they are no whole models."""
    suffix = os.path.splitext(name)[1].removeprefix(".").lower()  # noqa: PTH122
    return suffix if suffix in plugins(FORMATS) else None


def canonical_name(name: str) -> str:
    """A model's name as written in tables and records: `./m`, `m/` and `m` all become `m`."""
    return os.path.normpath(name) if is_local(name) else name


def is_name(name: object) -> bool:
    """Whether a value can name a model in tables, file names and on a terminal."""
    return (
        isinstance(name, str)
        and bool(name.strip())
        and name.isprintable()
        and len(name) <= LONGEST_PLACE
    )


def model_name(text: str) -> str:
    """The canonical name of a model: a folder, a file, a hub name, or a packaged model's.

    A name that is probably a misspelled packaged one raises a ValueError.
    """
    path(text)
    if (kind := packaged(text)) is not None:
        try:
            kind.folder(text)
        except UserError as error:
            raise ValueError(str(error)) from error
    elif "/" not in text and not is_local(text):
        near = ORGANISMS.nearest(text)
        if f"{near}-".startswith(f"{ORGANISMS.prefix}{text.partition('-')[0]}-"):
            raise ValueError(
                f"no model folder {shortened(text)!r}; did you mean {near}? Expected a folder, a "
                "hub name such as org/model, or organism/NAME"
            )
    return canonical_name(text)


class ModelChoice(Options):
    """A model that a user asks for."""

    place: str
    """Its folder, hub name or organism/NAME, in canonical form; empty for a model in memory."""
    name: str = ""
    """The name that the user gave it; empty if the name follows from the place."""


def model_choice(text: str) -> ModelChoice:
    """A model from PATH or NAME=PATH, where PATH may also be a hub name or organism/NAME.

    A path that exists is never split, and a name contains no "/", so paths may contain "=". An
    invalid name, and one of no such organism, raises a ValueError.
    """
    name, sign, place = text.partition("=")
    if not sign or "/" in name or os.path.lexists(text):
        return ModelChoice(place=model_name(text))
    if not is_name(name) or len(name) > LONGEST_NAME or not place:
        raise ValueError(
            f"got {shortened(repr(text))}, expected NAME=PATH with a printable name of at most "
            f"{LONGEST_NAME} characters, such as tuned=models/tuned"
        )
    return ModelChoice(place=model_name(place), name=name)


def chosen(text: str) -> ModelChoice:
    """A model from PATH or NAME=PATH in Python: `model_choice`, whose error is a UserError here."""
    try:
        return model_choice(text)
    except ValueError as error:
        raise UserError(str(error)) from error


def absolute(place: str) -> str:
    """The absolute path of a local model; other places stay as they are."""
    if packaged(place) or not is_local(place):
        return canonical_name(place)
    return os.path.abspath(place)  # noqa: PTH100


def short_name(place: str) -> str:
    """The last part of a path, without a file's suffix; of a hub's snapshot, its hub name."""
    return next(_spellings(place))


def _spellings(place: str) -> Iterator[str]:
    """The names that a place may have, from the shortest to the whole path."""
    full_path = absolute(place)
    parts = Path(full_path).parts[1:]
    if not parts or not os.path.isabs(full_path):  # noqa: PTH117
        yield full_path
        return
    if is_model_file(full_path):
        parts = (*parts[:-1], Path(full_path).stem)
    telling = [part for part in parts if not _UNTELLING.fullmatch(part)] or parts
    if telling[-1] == parts[-1]:
        yield _shown(parts[-1])
    else:
        name = telling[-1].removeprefix("models--").replace("--", "/")
        yield _shown(name)
        yield _shown(f"{name}@{parts[-1][:7]}")
    for start in reversed(range(len(parts) - 1)):
        yield _shown("/".join(parts[start:]))
    yield _shown(full_path)


def _shown(name: str) -> str:
    """A name on one line, which nobody takes for a packaged model's."""
    line = printable(name).replace("\n", "\\n")
    return f"./{line}" if packaged(line) else line


def names_of(choices: Sequence[ModelChoice], recorded: Mapping[str, str]) -> list[str]:
    """A name for each model, as short as possible and unlike all others.

    `recorded` is the name under which a run has measured the model at each absolute place; the
    model keeps it, and no other model gets it. A model or name given twice raises a UserError.
    """
    unnamed = [choice.place for choice in choices if not choice.name]
    _check_different([os.path.realpath(place) for place in unnamed], unnamed)
    fixed = [choice.name or recorded.get(absolute(choice.place)) for choice in choices]
    spelled = [
        [name] if name else [*_spellings(choice.place)]
        for choice, name in zip(choices, fixed, strict=True)
    ]
    while True:
        names = [forms[0] for forms in spelled]
        taken = Counter([*names, *recorded.values()])
        clashing = [forms for forms in spelled if len(forms) > 1 and taken[forms[0]] > 1]
        if not clashing:
            break
        for forms in clashing:
            del forms[0]
    _check_different(names, names)
    return names


def _check_different(keys: Sequence[str], names: Sequence[str]) -> None:
    for key, name in zip(keys, names, strict=True):
        if keys.count(key) > 1:
            raise UserError(
                f"got the model {shortened(printable(name))} twice; name each model once, or tell "
                "two models apart by NAME=PATH"
            )
