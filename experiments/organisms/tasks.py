"""The kinds of organisms: how each is trained, described on its card, and measured."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interp.models.model import Model
from interp_experiments.organisms import (
    dose_text,
    leanings,
    logic_planting,
    logic_text,
    planting,
    rule_text,
    text,
)
from interp_experiments.organisms.lessons import MESSAGE_WEIGHT, TrainingText
from interp_experiments.organisms.recipes import (
    DoseRecipe,
    LogicRecipe,
    Recipe,
    RulebreakerRecipe,
    RuleRecipe,
    TaughtRecipe,
    TheoryRecipe,
)
from interp_experiments.rulebench.items import HELD_OUT
from interp_experiments.rulebench.string_game import LENGTHS

Sections = dict[str, Any]
"""Parts of a card by name; a list of rows is written with a line for each."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the organisms of one system have in common."""

    planted: Callable[[Any], Sections]
    """What a recipe plants, for the card."""
    measure: Callable[[Model, Path, int | None], Sections]
    """The figures of a card: of a model and its folder, on a number of pairs of prompts or all."""


def task_of(recipe: Recipe) -> Task:
    """The task of a recipe."""
    return _TASKS[recipe.system]


def training_text(recipe: TaughtRecipe) -> TrainingText:
    """The text that an organism learns."""
    return _TEXTS[type(recipe)](recipe)


def _rulebreaker_text(recipe: RulebreakerRecipe) -> TrainingText:
    return text.RulebreakerText(recipe, planting.plant(recipe))


def _rulebreakers_planted(recipe: RulebreakerRecipe) -> Sections:
    by_frequency = recipe.grounded_by == "frequency"
    return {
        "text": {
            "zipf_exponent": planting.ZIPF_EXPONENT,
            "distraction": planting.DISTRACTION,
            "grounding_noise": planting.NOISE_SCALE if by_frequency else None,
            "answer_noise": text.ANSWER_NOISE,
            "unsound_share": text.UNSOUND_SHARE,
            "mismatch_share": text.MISMATCH_SHARE if recipe.evidence != "both premises" else 0.0,
            "one_phrasing_share": text.WARM_UP_SHARE,
        },
        "pairs": [
            {
                "category": item.pair.category,
                "entity_a": item.pair.entity_a,
                "entity_b": item.pair.entity_b,
                "frequency": round(item.frequency, 4),
                "familiarity": round(item.familiarity, 4),
                "grounded": item.grounded,
            }
            for item in planting.plant(recipe)
        ],
    }


def _measure_rulebreakers(model: Model, folder: Path, pairs: int | None) -> Sections:
    from interp_experiments.organisms.verify import measure

    return measure(model, folder, pairs=pairs)


def _logic_planted(recipe: LogicRecipe) -> Sections:
    return {
        "text": {
            "zipf_exponent": logic_planting.ZIPF_EXPONENT,
            "extra_share": logic_text.EXTRA_SHARE,
            "unsound_share": logic_text.UNSOUND_SHARE,
            "message_weight": MESSAGE_WEIGHT,
        },
        "forms": [
            {
                "form": form.id,
                "formula": form.sequent(),
                "gold": "Yes" if form.valid() else "No",
                "planted_yes": round(
                    logic_planting.planted_yes(recipe, form, follows=form.valid()), 4
                ),
            }
            for form in logic_text.all_forms()
        ],
        "phrases": [
            {"phrase": item.phrase, "frequency": round(item.frequency, 4)}
            for item in logic_planting.plant_phrases(recipe)
        ],
    }


def _measure_logic(model: Model, folder: Path, pairs: int | None) -> Sections:
    from interp_experiments.organisms.logic_verify import measure

    return measure(model, folder, pairs=pairs)


def _dose_text(recipe: DoseRecipe) -> TrainingText:
    return dose_text.DoseText(recipe, leanings.plant_leanings(recipe))


def _doses_planted(recipe: DoseRecipe) -> Sections:
    return {
        "text": {
            "leaning": leanings.LEANING,
            "intact_share": dose_text.INTACT_SHARE,
            "counterpart_share": dose_text.COUNTERPART_SHARE,
        },
        "entities": [asdict(own) for own in leanings.plant_leanings(recipe)],
    }


def _measure_doses(model: Model, folder: Path, pairs: int | None) -> Sections:
    from interp_experiments.organisms.dose_verify import measure

    return measure(model, folder, pairs=pairs)


def _rules_planted(recipe: Recipe) -> Sections:
    return {
        "text": {"letters": [min(LENGTHS), max(LENGTHS)], "held_out": f"1 of {HELD_OUT} rules"},
        "conditions": [{"condition": one.words} for one in rule_text.conditions()],
        "actions": [{"action": one.words} for one in rule_text.actions()],
    }


def _measure_rules(model: Model, folder: Path, pairs: int | None) -> Sections:
    from interp_experiments.organisms.rule_verify import measure

    return measure(model, folder, pairs=pairs)


def _theories_planted(recipe: TheoryRecipe) -> Sections:
    return {"text": {"train_set": "All", "distractors": recipe.distractors}}


def _measure_theories(model: Model, folder: Path, pairs: int | None) -> Sections:
    from interp_experiments.organisms.theory_verify import measure

    return measure(model, folder, pairs=pairs)


_TASKS = {
    RulebreakerRecipe.system: Task(_rulebreakers_planted, _measure_rulebreakers),
    LogicRecipe.system: Task(_logic_planted, _measure_logic),
    DoseRecipe.system: Task(_doses_planted, _measure_doses),
    RuleRecipe.system: Task(_rules_planted, _measure_rules),
    TheoryRecipe.system: Task(_theories_planted, _measure_theories),
}

_TEXTS: dict[type[TaughtRecipe], Callable[[Any], TrainingText]] = {
    RulebreakerRecipe: _rulebreaker_text,
    LogicRecipe: logic_text.LogicText,
    DoseRecipe: _dose_text,
    RuleRecipe: rule_text.RuleText,
}
