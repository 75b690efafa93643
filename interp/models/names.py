"""Names of models: the last part of a path, unless the user writes NAME=PATH."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from interp.errors import UserError, printable, shortened
from interp.models.loading import (
    canonical_name,
    is_local,
    is_model_file,
    is_name,
    model_name,
)
from interp.models.packaged import packaged
from interp.options import Options

LONGEST_NAME = 200
"""Maximum number of characters in a name that a user gives to a model."""

_UNTELLING = re.compile("snapshots|[0-9a-f]{40}|[0-9a-f]{64}")
"""Parts of a path that say nothing to a reader, as in models--org--name/snapshots/HASH."""


class ModelChoice(Options):
    """A model that a user asks for."""

    place: str
    """Its folder, hub name or organism/NAME, in canonical form; empty for a model in memory."""
    name: str = ""
    """The name that the user gave it; empty if the name follows from the place."""


def model_choice(text: str) -> ModelChoice:
    """A model from PATH or NAME=PATH, where PATH may also be a hub name or organism/NAME.

    A path that exists is never split, and a name contains no "/", so paths may contain "=".

    Raises:
        ValueError: the name is invalid, there is no such organism, or the place is probably a
            misspelled organism.
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
    """A model from PATH or NAME=PATH in Python (`model_choice`).

    Raises:
        UserError: the text is invalid.
    """
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
    """The name of a model to which the user gives none: the last part of its path.

    A file that is a whole model is named without its suffix.
    A snapshot in a hub's cache has its name on the hub.
    """
    return next(_spellings(place))


def _spellings(place: str) -> Iterator[str]:
    """The names that a place may have, from the shortest to the whole path."""
    whole = absolute(place)
    parts = Path(whole).parts[1:]
    if not parts or not os.path.isabs(whole):  # noqa: PTH117
        yield whole
        return
    if is_model_file(whole):
        parts = (*parts[:-1], Path(whole).stem)
    telling = [part for part in parts if not _UNTELLING.fullmatch(part)] or parts
    if telling[-1] == parts[-1]:
        yield _shown(parts[-1])
    else:
        name = telling[-1].removeprefix("models--").replace("--", "/")
        yield _shown(name)
        yield _shown(f"{name}@{parts[-1][:7]}")
    for start in reversed(range(len(parts) - 1)):
        yield _shown("/".join(parts[start:]))
    yield _shown(whole)


def _shown(name: str) -> str:
    """A name on one line, which nobody takes for a packaged model's."""
    line = printable(name).replace("\n", "\\n")
    return f"./{line}" if packaged(line) else line


def names_of(choices: Sequence[ModelChoice], recorded: Mapping[str, str]) -> list[str]:
    """A name for each model, as short as possible and unlike all others.

    Args:
        choices: the models.
        recorded: the name under which a run has measured the model at each absolute place; the
            model keeps it, and no other model gets it.

    Raises:
        UserError: a model or a name occurs twice.
    """
    unnamed = [choice.place for choice in choices if not choice.name]
    _check_different([os.path.realpath(place) for place in unnamed], unnamed)
    fixed = [choice.name or recorded.get(absolute(choice.place)) for choice in choices]
    spelled = [
        [name] if name else [*_spellings(choice.place)]
        for choice, name in zip(choices, fixed, strict=True)
    ]
    while True:
        names = [own[0] for own in spelled]
        taken = Counter([*names, *recorded.values()])
        clashing = [own for own in spelled if len(own) > 1 and taken[own[0]] > 1]
        if not clashing:
            break
        for own in clashing:
            del own[0]
    _check_different(names, names)
    return names


def _check_different(keys: Sequence[str], names: Sequence[str]) -> None:
    for key, name in zip(keys, names, strict=True):
        if keys.count(key) > 1:
            raise UserError(
                f"got the model {shortened(printable(name))} twice; name each model once, or tell "
                "two models apart by NAME=PATH"
            )
