"""The packaged organisms: small trained models whose knowledge and habits were planted.

Each folder beside this file is one organism: safetensors, tokenizer, chat template, card.
"""

import json
from pathlib import Path
from typing import Any

from interp.errors import UserError

PREFIX = "organism/"
"""Model names that begin so name a packaged organism."""

DEFAULT = "organism/llama-shallow"
"""The model of a command without --model."""


def organism_names(system: str | None = None) -> list[str]:
    """Names of the packaged organisms, with their prefix.

    Args:
        system: those that learned the prompts of this system only; all if None.
    """
    names = sorted(PREFIX + card.parent.name for card in Path(__file__).parent.glob("*/card.json"))
    if system is None:
        return names
    return [name for name in names if organism_card(name)["system"] == system]


def organism_folder(name: str) -> Path:
    """The folder of a packaged organism.

    Raises:
        UserError: no organism of that name.
    """
    if name not in organism_names():
        raise UserError(
            f"no packaged organism {name!r}; there are {', '.join(organism_names()) or 'none'}"
        )
    return Path(__file__).parent / name.removeprefix(PREFIX)


def organism_card(name: str) -> dict[str, Any]:
    """What was planted in an organism and what was measured of it."""
    card: dict[str, Any] = json.loads(
        (organism_folder(name) / "card.json").read_text(encoding="utf-8")
    )
    return card
