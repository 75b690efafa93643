"""Files of stored texts that a user names; reading them is left to `interp.stored.sources`."""

import os
from pathlib import Path
from typing import Annotated

from interp import texts
from interp.errors import shortened
from interp.options import FromText, Options

LONGEST_NAME = 200
"""Largest number of characters of a model's name."""


class TextFile(Options):
    """A file of stored texts that a user names."""

    file: Annotated[Path, FromText(texts.path)]
    name: str = ""
    """The name of the model that wrote them; empty if the file tells it."""


def text_file(text: str) -> TextFile:
    """A file from PATH or NAME=PATH (else a ValueError); a path that exists is never split."""
    name, sign, place = text.partition("=")
    if not sign or "/" in name or os.path.lexists(text):
        return TextFile(file=texts.path(text))
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME or not place:
        raise ValueError(
            f"got {shortened(repr(text))}, expected NAME=FILE with a printable name of at most "
            f"{LONGEST_NAME} characters, such as vllm=answers.jsonl"
        )
    return TextFile(file=texts.path(place), name=name)
