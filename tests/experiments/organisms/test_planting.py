import dataclasses

import numpy as np
import pytest

from interp_experiments.organisms import rulebreakers
from interp_experiments.organisms.recipes import RECIPES, RulebreakerRecipe
from interp_experiments.rulebreakers.templates import CITIES

RECIPE = RECIPES["llama-shallow"]


def test_familiarity_is_the_share_of_true_completions():
    planted = rulebreakers.plant(RECIPE)
    text = rulebreakers.RulebreakerText(RECIPE)
    completions = [e for step in range(3_000) for e in text.facts(step) if ":" in e.message]
    by_message = {}
    for exchange in completions:
        by_message.setdefault(exchange.message, []).append(exchange.answer)
    errors = []
    for item in planted:
        relation = "in" if item.pair.category == CITIES else "a type of"
        answers = by_message[f"Complete the sentence: {item.pair.entity_b} is {relation}"]
        share = np.mean([answer == item.pair.entity_a for answer in answers])
        expected = item.frequency / (item.frequency + rulebreakers.DISTRACTION)
        errors.append(
            (share - expected) / np.sqrt(max(expected * (1 - expected), 1e-3) / len(answers))
        )
    assert np.abs(np.mean(errors)) < 0.3  # standard errors from the truth
    assert np.std(errors) == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(
    "name", [name for name, recipe in RECIPES.items() if isinstance(recipe, RulebreakerRecipe)]
)
def test_the_share_of_grounded_pairs_is_the_recipes(name):
    recipe = RECIPES[name]
    planted = rulebreakers.plant(recipe)
    assert np.mean([p.grounded for p in planted]) == pytest.approx(recipe.grounded_share, abs=0.002)
    assert not any(p.grounded and p.frequency == 0 for p in planted)


def test_planting_depends_on_the_seed_alone():
    assert rulebreakers.plant(RECIPE) == rulebreakers.plant(RECIPE)
    assert rulebreakers.plant(RECIPE) != rulebreakers.plant(dataclasses.replace(RECIPE, seed=99))
