"""The kinds of organisms: what each learns, what its card lists, and how it is measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interp_experiments.organisms import doses, logic, rulebreakers, rules, theories
from interp_experiments.organisms.recipes import (
    DoseRecipe,
    LogicRecipe,
    Recipe,
    RulebreakerRecipe,
    RuleRecipe,
    TaughtRecipe,
    TheoryRecipe,
    TrainingText,
)

Sections = dict[str, Any]
"""Sections of a card by name; a list of rows is written with one line per row."""


@dataclass(frozen=True, slots=True)
class Task:
    """The functions that the organisms of one system share."""

    planted: Callable[[Any], Sections]
    """The sections of the card that say what a recipe plants."""
    measure: Callable[..., Sections]
    """The measured figures of a card, from a model, its folder, and `pairs`: how many prompt pairs
    are measured (the default if None)."""


def task_of(recipe: Recipe) -> Task:
    """The task of a recipe."""
    return _TASKS[recipe.system]


def training_text(recipe: TaughtRecipe) -> TrainingText:
    """The text that an organism learns."""
    return _TEXTS[type(recipe)](recipe)


_TASKS = {
    RulebreakerRecipe.system: Task(rulebreakers.planted_sections, rulebreakers.measure),
    LogicRecipe.system: Task(logic.planted_sections, logic.measure),
    DoseRecipe.system: Task(doses.planted_sections, doses.measure),
    RuleRecipe.system: Task(rules.planted_sections, rules.measure),
    TheoryRecipe.system: Task(theories.planted_sections, theories.measure),
}

_TEXTS: dict[type[TaughtRecipe], Callable[[Any], TrainingText]] = {
    RulebreakerRecipe: rulebreakers.RulebreakerText,
    LogicRecipe: logic.LogicText,
    DoseRecipe: doses.DoseText,
    RuleRecipe: rules.RuleText,
}
