"""The card of an organism: what was planted, how it was trained, what was measured."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from interp_experiments.organisms.recipes import Recipe

FILE = "card.json"


def write_card(folder: Path, recipe: Recipe, planted: Mapping[str, Any], *, device: str) -> None:
    """Write the card of an organism that was just trained, without measurements.

    Args:
        folder: the organism's folder.
        recipe: the organism's recipe.
        planted: the sections that say what is planted; "text" describes the training text.
        device: the device that it was trained on.
    """
    card = {
        "name": recipe.name,
        "system": recipe.system,
        "recipe": asdict(recipe),
        "text": planted["text"],
        "trained": {
            "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "measured": {},
        **{section: rows for section, rows in planted.items() if section != "text"},
    }
    _write(folder, card)


def write_measured(folder: Path, measured: dict[str, Any]) -> None:
    """Write measurements into the card of a folder."""
    card = read_card(folder)
    card["measured"] = measured
    _write(folder, card)


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a folder."""
    card: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return card


def _write(folder: Path, card: dict[str, Any]) -> None:
    """Write a card, indented, with one line per row of a section, so changes can be read."""
    sections = {key: rows for key, rows in card.items() if isinstance(rows, list)}
    text = json.dumps(
        {**card, **{name: [] for name in sections}}, indent=2, ensure_ascii=False, default=sorted
    )
    for name, rows in sections.items():
        lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
        text = text.replace(f'"{name}": []', f'"{name}": [\n{lines}\n  ]')
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
