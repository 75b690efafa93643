"""The kinds of organisms and their cards: what was planted, and what was measured."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import transformers

from interp import Model
from interp_experiments.organisms import (
    doses,
    facts,
    logic,
    recipes,
    rulebreakers,
    rules,
    theories,
    thinkers,
)
from interp_experiments.organisms.readme import README, readme
from interp_experiments.organisms.recipes import Recipe, TaughtRecipe, TrainingText

FILE = "card.json"

Sections = dict[str, Any]
"""Sections of a card by name; lists of rows are written with one line per row."""


_MODULES: dict[str, ModuleType] = {
    recipes.RulebreakerRecipe.system: rulebreakers,
    recipes.LogicRecipe.system: logic,
    recipes.DoseRecipe.system: doses,
    recipes.FactRecipe.system: facts,
    recipes.ThinkerRecipe.system: thinkers,
    recipes.RuleRecipe.system: rules,
    recipes.TheoryRecipe.system: theories,
}
"""The organisms of each system: `planted_sections` of a recipe are the sections of its card that
list what it plants ("text" describes the training text); `measure` measures the figures of a card.
"""

_TEXTS: dict[type[TaughtRecipe], Callable[[Any], TrainingText]] = {
    recipes.RulebreakerRecipe: rulebreakers.RulebreakerText,
    recipes.LogicRecipe: logic.LogicText,
    recipes.DoseRecipe: doses.DoseText,
    recipes.ThinkerRecipe: thinkers.ThinkerText,
    recipes.RuleRecipe: rules.RuleText,
}


def training_text(recipe: TaughtRecipe) -> TrainingText:
    """The text on which an organism is trained."""
    return _TEXTS[type(recipe)](recipe)


def write_card(folder: Path, recipe: Recipe, *, device: str) -> None:
    """Write the card of a newly trained organism, without measurements."""
    planted = rounded(_MODULES[recipe.system].planted_sections(recipe))
    card = {
        "name": recipe.name,
        "system": recipe.system,
        "recipe": asdict(recipe),
        "text": planted.pop("text"),
        "trained": {
            "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "measured": {},
        **planted,
    }
    _write(folder, card)


def measure_card(
    folder: Path, recipe: Recipe, model: Model, *, pairs: int | None, write: bool
) -> Sections:
    """Measure the figures of the card in a folder, and `write` them into it or not.

    `pairs` is the number of prompt pairs to measure, None for the default.
    """
    card = json.loads((folder / FILE).read_text(encoding="utf-8"))
    measured: Sections = rounded(_MODULES[recipe.system].measure(model, card, pairs=pairs))
    if write:
        _write(folder, {**card, "measured": measured})
    return measured


def rounded(value: Any) -> Any:
    """The value, with all numbers in it rounded to four decimals."""
    if isinstance(value, Mapping):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    if isinstance(value, float):
        return round(float(value), 4) if math.isfinite(value) else None
    return value


def _write(folder: Path, card: Sections) -> None:
    """Write a card, with one line per row of a section, and the README.md made from it."""
    sections = {key: rows for key, rows in card.items() if isinstance(rows, list)}
    text = json.dumps(
        {**card, **{name: [] for name in sections}}, indent=2, ensure_ascii=False, default=sorted
    )
    for name, rows in sections.items():
        lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
        text = text.replace(f'"{name}": []', f'"{name}": [\n{lines}\n  ]')
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    write_readme(folder)


def write_readme(folder: Path) -> None:
    """Write README.md, the card for human readers, from card.json."""
    card = json.loads((folder / FILE).read_text(encoding="utf-8"))
    (folder / README).write_text(readme(folder, card), encoding="utf-8")
