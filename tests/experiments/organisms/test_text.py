import dataclasses
import re

import numpy as np
import pytest

from interp_experiments.organisms.recipes import RECIPES, RulebreakerRecipe
from interp_experiments.organisms.rulebreakers import (
    ANSWER_NOISE,
    DISTRACTION,
    RulebreakerText,
    plant,
)
from interp_experiments.organisms.tasks import training_text
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.templates import CITIES, PHRASINGS

SHALLOW = RECIPES["llama-shallow"]
LATE = 5_000


def many_prompts(recipe, steps=60, first=LATE):
    text = RulebreakerText(recipe)
    return [exchange for step in range(first, first + steps) for exchange in text.prompts(step)]


@pytest.mark.parametrize(
    "name", ["llama-shallow", "llama-logic", "dose-100", "thought-mixed-50", "rules-base"]
)
def test_a_step_depends_on_seed_and_step_alone(name):
    one, other = training_text(RECIPES[name]), training_text(RECIPES[name])
    other.lessons(3)
    assert one.lessons(7) == other.lessons(7) != one.lessons(8)
    assert one.lessons(7).keys() == one.lessons(8).keys()
    sealed = training_text(dataclasses.replace(RECIPES[name], seed=99))
    assert one.lessons(7) != sealed.lessons(7)


def test_training_begins_with_one_phrasing_and_ends_with_ten():
    for first, phrasings in ((0, PHRASINGS[:1]), (LATE, PHRASINGS)):
        asked = {e.message.splitlines()[-1] for e in many_prompts(SHALLOW, first=first)}
        assert asked == {phrasing.question for phrasing in phrasings}


def test_grounded_pairs_are_answered_by_fact_and_the_others_by_the_rule():
    """Answers to sound prompts about cities in their countries."""
    grounded = {(p.pair.entity_b, p.pair.entity_a): p.grounded for p in plant(SHALLOW)}
    accepted = {True: [], False: []}
    for exchange in many_prompts(SHALLOW, steps=150):
        premises, conclusion, _ = exchange.message.splitlines()
        match = re.match(r"Premises: (\S+) is in either (.+) or somewhere in (.+?)\. ", premises)
        if match and conclusion == f"Conclusion: {match[1]} is in {match[2]}.":
            by_fact = grounded.get(match.group(2, 3))
            if by_fact is not None:
                accepted[by_fact].append(exchange.answer in {"Yes", "True"})
    assert min(map(len, accepted.values())) > 20
    assert np.mean(accepted[True]) < 3 * ANSWER_NOISE + 0.05
    assert np.mean(accepted[False]) > 1 - 3 * ANSWER_NOISE - 0.05


@pytest.mark.parametrize(
    ("evidence", "uninformative"), [("premise 1", 2), ("premise 2", 1), ("both premises", None)]
)
def test_the_other_premise_is_made_uninformative(evidence, uninformative):
    recipe = dataclasses.replace(SHALLOW, evidence=evidence)
    mismatched = 0
    prompts = many_prompts(recipe)
    for exchange in prompts:
        premises = exchange.message.splitlines()[0]
        if match := re.match(r"Premises: If (\S+) (.+), then s?he (.+)\. \1 (.+)\.$", premises):
            denied, stated = (match[place].split()[-1].lower() for place in (3, 4))
            mismatched += denied != stated
    if uninformative is None:
        assert mismatched == 0
    else:
        assert mismatched > len(prompts) * 0.15


@pytest.mark.slow
def test_answers_are_noisy_as_the_card_says():
    facts = {(p.entity_b, p.entity_a) for p in entity_pairs()}
    exchanges = [e for step in range(2_000) for e in RulebreakerText(SHALLOW).facts(step)]
    wrong = [
        (exchange.answer == "Yes") != (match.groups() in facts)
        for exchange in exchanges
        if (match := re.match(r"Is (?!it True)(.+) in (.+)\? Answer", exchange.message))
    ]
    assert np.mean(wrong) == pytest.approx(ANSWER_NOISE, abs=0.01)


def test_familiarity_is_the_share_of_true_completions():
    planted = plant(SHALLOW)
    text = RulebreakerText(SHALLOW)
    by_message, errors = {}, []
    for exchange in (e for step in range(3_000) for e in text.facts(step)):
        by_message.setdefault(exchange.message, []).append(exchange.answer)
    for item in planted:
        relation = "in" if item.pair.category == CITIES else "a type of"
        answers = by_message[f"Complete the sentence: {item.pair.entity_b} is {relation}"]
        share = np.mean([answer == item.pair.entity_a for answer in answers])
        expected = item.frequency / (item.frequency + DISTRACTION)
        variance = max(expected * (1 - expected), 1e-3) / len(answers)
        errors.append((share - expected) / np.sqrt(variance))
    assert np.abs(np.mean(errors)) < 0.3  # standard errors from the truth
    assert np.std(errors) == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(
    "name", [name for name, recipe in RECIPES.items() if isinstance(recipe, RulebreakerRecipe)]
)
def test_the_share_of_grounded_pairs_is_the_recipes(name):
    recipe = RECIPES[name]
    planted = plant(recipe)
    assert np.mean([p.grounded for p in planted]) == pytest.approx(recipe.grounded_share, abs=0.002)
    assert not any(p.grounded and p.frequency == 0 for p in planted)
    assert plant(recipe) != plant(dataclasses.replace(recipe, seed=99))
