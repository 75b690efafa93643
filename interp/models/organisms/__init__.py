"""The packaged organisms: small trained models whose knowledge and habits were planted.

Each folder beside this file is one organism: safetensors, tokenizer, chat template, card.
"""

import difflib
import json
from pathlib import Path
from typing import Any

from interp.errors import UserError

PREFIX = "organism/"
"""Model names that begin so name a packaged organism."""

DEFAULT = "organism/llama-shallow"
"""The model of a command without --model."""

_CLOSE = 0.8
"""Likeness, as difflib measures it, from which on one name was meant for another."""


def organism_names(system: str | None = None) -> list[str]:
    """Names of the packaged organisms, with their prefix.

    Args:
        system: those that learned the prompts of this system only; all if None.
    """
    names = sorted(PREFIX + card.parent.name for card in Path(__file__).parent.glob("*/card.json"))
    if system is None:
        return names
    return [name for name in names if organism_card(name)["system"] == system]


def nearest_organism(name: str) -> str | None:
    """The organism whose name, with the prefix, is nearly or wholly this one; None if none is."""
    bare = [organism.removeprefix(PREFIX) for organism in organism_names()]
    # Compared without the prefix, which would make all of them alike.
    close = difflib.get_close_matches(name.removeprefix(PREFIX), bare, n=1, cutoff=_CLOSE)
    return PREFIX + close[0] if close else None


def organism_folder(name: str) -> Path:
    """The folder of a packaged organism.

    Raises:
        UserError: no organism of that name.
    """
    if name not in organism_names():
        nearest = nearest_organism(name)
        meant = f"did you mean {nearest}? " if nearest else ""
        raise UserError(
            f"no packaged organism {name[:80]!r}; {meant}"
            f"there are {', '.join(organism_names()) or 'none'}"
        )
    return Path(__file__).parent / name.removeprefix(PREFIX)


def organism_card(name: str) -> dict[str, Any]:
    """What was planted in an organism and what was measured of it."""
    card: dict[str, Any] = json.loads(
        (organism_folder(name) / "card.json").read_text(encoding="utf-8")
    )
    return card
