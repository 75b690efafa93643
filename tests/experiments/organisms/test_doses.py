"""Dose organisms: what is planted, its Shapley values, and the text that teaches it."""

import dataclasses
from collections import Counter
from itertools import product

import numpy as np
import pytest

from interp.attribution.games import Coalitions, interactions, leave_one_out, shapley_values
from interp.prompts.mixing import donors_of
from interp_experiments.organisms import doses
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.templates import CITIES, FAMILIES, PHRASINGS

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
HALF = dataclasses.replace(RECIPES["dose-100"], share=0.5)
TUNED = dataclasses.replace(HALF, seed=20, base="dose-100", premises_until=0.0)


@pytest.fixture(scope="module")
def prompts():
    return list(doses.spread_prompts(24))


@pytest.mark.parametrize("share", SHARES)
def test_premise_1_decides_the_planted_share(share):
    recipe = dataclasses.replace(HALF, share=share)
    planted = {own.entity: own for own in doses.plant_leanings(recipe)}
    countries = [pair.entity_a for pair in entity_pairs() if pair.category == CITIES]
    types = [name for family in FAMILIES for name in family]
    for group in (countries, types):
        first = sum(planted[entity].premise == "premise1" for entity in group)
        assert first == pytest.approx(recipe.share * len(group), abs=0.51)


def test_another_seed_plants_anew_and_a_tuned_organism_keeps_the_leanings_of_its_base():
    def planted(recipe, more=0):
        """The leanings and the premises of all entities."""
        own = doses.plant_leanings(dataclasses.replace(recipe, seed=recipe.seed + more))
        ordered = sorted(own, key=lambda one: one.entity)
        return [one.log_odds for one in ordered], [one.premise for one in ordered]

    (signs, places), (others, elsewhere) = planted(HALF), planted(HALF, 100)
    assert signs != others and places != elsewhere
    (signs, places), (sealed, elsewhere) = planted(TUNED), planted(TUNED, 100)
    assert signs == sealed == planted(RECIPES[TUNED.base])[0] and places != elsewhere


def test_a_premise_is_about_the_entity_that_it_names_last():
    rule = doses.Rule(doses.plant_leanings(HALF))
    for sentence, entity in (
        ("Ann has been to either Mexico City or somewhere in Mexico.", "Mexico"),
        ("If Ann has been to Mexico, then she has not been to Mexico City.", "Mexico City"),
        ("Ann was born in Washington, D.C..", "Washington, D.C."),
        ("Ann has been to South Sudan.", "South Sudan"),
        ("Ann did not see any kind of fish.", "fish"),
    ):
        assert rule.read(sentence).entity == entity


def test_the_decisive_premise_alone_carries_an_intact_prompt(prompts):
    rule = doses.Rule(doses.plant_leanings(HALF))
    topic = {"mt": "entity_b", "ds": "entity_a"}
    for prompt in prompts:
        expected = prompt.factors[topic[prompt.factors["rule"]]]
        for premise in doses.PREMISES:
            assert rule.read(prompt.segment_text(premise)).entity == expected
        terms = {name: rule.term(name, prompt.segment_text(name)) for name in doses.PREMISES}
        assert abs(terms.pop(rule.decisive(prompt))) == doses.LEANING
        assert list(terms.values()) == [0.0]
    assert {rule.decisive(prompt) for prompt in prompts} == set(doses.PREMISES)


def planted_game(rule, prompt, donors):
    """The rule's log-odds of every mixed prompt: donors by coalitions."""
    mixed = Coalitions(prompt, donors).prompts
    texts = [[[p.segment_text(name) for name in doses.PREMISES] for p in row] for row in mixed]
    return np.array([[rule.log_odds(*own) for own in row] for row in texts])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_formula_of_the_shapley_values_is_a_count_over_coalitions(prompts, share):
    rule = doses.Rule(doses.plant_leanings(dataclasses.replace(HALF, share=share)))
    seen = set()
    for prompt, kind in product(prompts, ("instance", "counterpart")):
        donors = donors_of(prompt, kind)
        game = planted_game(rule, prompt, donors)
        formula = list(rule.shapley(prompt, donors).values())
        np.testing.assert_allclose(shapley_values(game).mean(0), formula, atol=1e-12)
        np.testing.assert_allclose(leave_one_out(game).mean(0), formula, atol=1e-12)
        assert all(np.abs(own).max() < 1e-12 for own in interactions(game).values())
        seen |= set(np.round(formula, 6))
    assert len(seen) > 5


def late_prompts(recipe, steps=40):
    text = doses.DoseText(recipe)
    late = range(recipe.steps - steps, recipe.steps)
    return [exchange for step in late for exchange in text.lessons(step)["prompts"]]


def premises_of(message):
    """The two premises of a message; both begin with the person's name, the first perhaps by If."""
    text = message.splitlines()[0].removeprefix("Premises: ")
    name = text.removeprefix("If ").split()[0]
    premise1, _, rest = text.partition(f". {name} ")
    return f"{premise1}.", f"{name} {rest}"


def test_single_premises_come_first_and_a_tuned_organism_begins_with_prompts():
    assert set(doses.DoseText(HALF).lessons(0)) == {"premises"}
    assert set(doses.DoseText(HALF).lessons(HALF.steps - 1)) == {"prompts"}
    assert set(doses.DoseText(TUNED).lessons(0)) == {"prompts"}


def test_answers_have_the_planted_log_odds_and_premises_the_entities_that_donors_give():
    rule = doses.Rule(doses.plant_leanings(HALF))
    prompts = late_prompts(HALF)
    for exchange in prompts:
        log_odds = rule.log_odds(*premises_of(exchange.message))
        sign = 1 if exchange.answer in ("Yes", "True") else -1
        assert exchange.share == pytest.approx(1 / (1 + np.exp(-sign * log_odds)))
    assert {e.message.splitlines()[-1] for e in prompts} == {p.question for p in PHRASINGS}
    either = {("Yes", "No"), ("True", "False"), ("No", "Yes"), ("False", "True")}
    assert {(e.answer, e.other) for e in prompts} == either
    read = [[rule.read(own) for own in premises_of(e.message)] for e in prompts]
    different = [one.entity != other.entity for one, other in read]
    # 0.7 mixed, 0.8 of them with another pair of entities, half of these in one premise alone; a
    # donor of the other side changes the entity of one premise under disjunctive syllogism only.
    assert np.mean(different) == pytest.approx(0.7 * (0.8 + 0.2 / 2) / 2, abs=0.04)


def test_every_mixture_occurs():
    """Of a country's prompt under modus tollens, each sentence is about either pair of entities."""
    seen = Counter()
    for exchange in late_prompts(HALF, steps=100):
        premise1, premise2 = premises_of(exchange.message)
        country, _, city = premise1.removeprefix("If ").partition(", then ")
        if city:
            conclusion = exchange.message.splitlines()[1]
            about = country.split(" in ")[-1] if " in " in country else country.split(" to ")[-1]
            same2 = city.split()[-1] == premise2.split()[-1]
            seen[same2, conclusion.endswith(f" {about}.")] += 1
    assert set(seen) == set(product((True, False), repeat=2))
