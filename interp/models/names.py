"""The one spelling of a model's name."""

import os


def is_folder(name: str) -> bool:
    """Whether a model's name is that of a folder here; names that cannot be one are none."""
    # Path.is_dir raises an error for a name that is too long, or that no file can have.
    return os.path.isdir(name)  # noqa: PTH112


def canonical_name(name: str) -> str:
    """The one spelling of a model's name: of `./m`, `m/` and `m` it is `m`.

    Tables, records and the search for duplicates go by it.
    """
    return os.path.normpath(name) if is_folder(name) else name
