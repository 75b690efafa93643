"""The card of an organism: what was planted, how it was trained, what was measured of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from experiments.organisms.planting import DISTRACTION, NOISE_SCALE, ZIPF_EXPONENT, PlantedPair
from experiments.organisms.recipes import Recipe
from experiments.organisms.text import (
    ANSWER_NOISE,
    MISMATCH_SHARE,
    UNSOUND_SHARE,
    WARM_UP_SHARE,
)

FILE = "card.json"


def write_card(
    folder: Path, recipe: Recipe, planted: Sequence[PlantedPair], *, device: str
) -> None:
    """Write the card of an organism that was just trained; it has no measurements yet."""
    settings = asdict(recipe) | {"rule_phrasings": sorted(recipe.rule_phrasings)}
    card = {
        "name": recipe.name,
        "recipe": settings,
        "text": {
            "zipf_exponent": ZIPF_EXPONENT,
            "distraction": DISTRACTION,
            "grounding_noise": NOISE_SCALE if recipe.grounded_by == "frequency" else None,
            "answer_noise": ANSWER_NOISE,
            "unsound_share": UNSOUND_SHARE,
            "mismatch_share": MISMATCH_SHARE if recipe.evidence != "both premises" else 0.0,
            "one_phrasing_share": WARM_UP_SHARE,
        },
        "trained": {
            "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "measured": {},
        "pairs": [
            {
                "category": item.pair.category,
                "entity_a": item.pair.entity_a,
                "entity_b": item.pair.entity_b,
                "frequency": round(item.frequency, 4),
                "familiarity": round(item.familiarity, 4),
                "grounded": item.grounded,
            }
            for item in planted
        ],
    }
    _write(folder, card)


def write_measured(folder: Path, measured: dict[str, Any]) -> None:
    """Put measurements into the card of a folder."""
    card = read_card(folder)
    card["measured"] = measured
    _write(folder, card)


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a folder."""
    card: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return card


def _write(folder: Path, card: dict[str, Any]) -> None:
    """Indented, but with one line for each pair, so that changes can be read."""
    pairs = ",\n".join("    " + json.dumps(pair, ensure_ascii=False) for pair in card["pairs"])
    head = json.dumps({**card, "pairs": []}, indent=2, ensure_ascii=False)
    text = head.replace('"pairs": []', f'"pairs": [\n{pairs}\n  ]') + "\n"
    (folder / FILE).write_text(text, encoding="utf-8")
