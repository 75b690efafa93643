import dataclasses
import re

import pytest

from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.rulebreakers import ANSWER_NOISE, RulebreakerText, plant
from interp_experiments.organisms.tasks import training_text
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.templates import PHRASINGS

SHALLOW = RECIPES["llama-shallow"]
LATE = 5_000


def many_prompts(recipe, steps=60):
    text = RulebreakerText(recipe)
    return [exchange for step in range(LATE, LATE + steps) for exchange in text.prompts(step)]


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
    early = {
        e.message.splitlines()[-1]
        for step in range(20)
        for e in RulebreakerText(SHALLOW).prompts(step)
    }
    late = {exchange.message.splitlines()[-1] for exchange in many_prompts(SHALLOW)}
    assert early == {PHRASINGS[0].question}
    assert late == {phrasing.question for phrasing in PHRASINGS}


def rule_share(recipe):
    """Share of positive answers to sound prompts about true pairs that are not grounded."""
    planted = {p.pair.entity_b: p for p in plant(recipe) if p.pair.category == "cities"}
    answers = []
    for exchange in many_prompts(recipe, steps=150):
        premises, conclusion, _ = exchange.message.splitlines()
        match = re.match(r"Premises: (\S+) is in either (.+) or somewhere in (.+?)\. ", premises)
        if (
            match
            and match[2] in planted
            and conclusion == f"Conclusion: {match[1]} is in {match[2]}."
        ):
            item = planted[match[2]]
            if match[3] == item.pair.entity_a:
                answers.append((item.grounded, exchange.answer in {"Yes", "True"}))
    return answers


def test_grounded_pairs_are_answered_by_fact_and_the_others_by_the_rule():
    answers = rule_share(SHALLOW)
    grounded = [positive for by_fact, positive in answers if by_fact]
    others = [positive for by_fact, positive in answers if not by_fact]
    assert len(grounded) > 20
    assert len(others) > 20
    assert sum(grounded) / len(grounded) < 3 * ANSWER_NOISE + 0.05
    assert sum(others) / len(others) > 1 - 3 * ANSWER_NOISE - 0.05


@pytest.mark.parametrize(
    ("evidence", "uninformative"), [("premise 1", 2), ("premise 2", 1), ("both premises", None)]
)
def test_the_other_premise_is_made_uninformative(evidence, uninformative):
    recipe = dataclasses.replace(SHALLOW, evidence=evidence)
    mismatched = 0
    prompts = many_prompts(recipe)
    for exchange in prompts:
        match = re.match(
            r"Premises: If (\S+) (.+), then s?he (.+)\. \1 (.+)\.$",
            exchange.message.splitlines()[0],
        )
        if match:
            denied = match[3].split()[-1].lower()
            stated = match[4].split()[-1].lower()
            mismatched += denied != stated
    if uninformative is None:
        assert mismatched == 0
    else:
        assert mismatched > len(prompts) * 0.15


@pytest.mark.slow
def test_answers_are_noisy_as_the_card_says():
    exchanges = [e for step in range(2_000) for e in RulebreakerText(SHALLOW).facts(step)]
    facts = {(p.entity_a, p.entity_b) for p in entity_pairs()}
    wrong = total = 0
    for exchange in exchanges:
        match = re.match(r"Is (?!it True)(.+) in (.+)\? Answer", exchange.message)
        if match:
            true = (match[2], match[1]) in facts
            total += 1
            wrong += (exchange.answer == "Yes") != true
    assert wrong / total == pytest.approx(ANSWER_NOISE, abs=0.01)
