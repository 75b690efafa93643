"""The one spelling of a model's name."""

import os

from interp.errors import UserError, shortened
from interp.models.organisms import PREFIX, nearest_organism, organism_folder
from interp.texts import path


def is_folder(name: str) -> bool:
    """Whether a model's name is that of a folder here; names that cannot be one are none."""
    # Path.is_dir raises an error for a name that is too long, or that no file can have.
    return os.path.isdir(name)  # noqa: PTH112


def canonical_name(name: str) -> str:
    """The one spelling of a model's name: of `./m`, `m/` and `m` it is `m`.

    Tables, records and the search for duplicates go by it.
    """
    return os.path.normpath(name) if is_folder(name) else name


def model_name(text: str) -> str:
    """The name of a model in its one spelling: a folder, a name on the hub, or organism/NAME.

    Raises:
        ValueError: no organism of that name, or a name that is nearly that of one.
    """
    path(text)
    if text.startswith(PREFIX):
        try:
            organism_folder(text)
        except UserError as error:
            raise ValueError(str(error)) from error
    elif "/" not in text and not is_folder(text):
        near = nearest_organism(text)
        if near is not None and text.partition("-")[0] == near[len(PREFIX) :].partition("-")[0]:
            raise ValueError(
                f"no model folder {shortened(text)!r}; did you mean {near}? Expected a folder, a "
                "hub name such as org/model, or organism/NAME"
            )
    return canonical_name(text)
