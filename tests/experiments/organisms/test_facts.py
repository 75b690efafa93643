"""Fact organisms: what is planted, and that the built weights do it."""

import dataclasses
from collections import Counter

import pytest
import torch

import interp
from interp.lenses.corpus import sentences
from interp.lenses.store import fitted
from interp_experiments.organisms import facts
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.train import train

MIXED = RECIPES["fact-mixed"]
CITIES = 183
ROLE = "premise1_entity_b+premise2_entity_b+conclusion_entity_b"
FACTS = [recipe for name, recipe in RECIPES.items() if name.startswith("fact-")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("organism")
    train(MIXED, folder)
    return interp.load_model(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def prompts():
    return facts.city_prompts(24)


@pytest.mark.parametrize("recipe", FACTS, ids=lambda recipe: recipe.name)
def test_the_planted_shares(recipe):
    planted = facts.plant_facts(recipe)
    known, retrieved, used = (
        {own for own in planted if getattr(own, name)} for name in ("known", "retrieved", "used")
    )
    weak = {own for own in used if own.used == facts.WEAK}
    groups, shares = (planted, known, retrieved, used, weak), ("known", "retrieved", "used", "weak")
    for whole, part, share in zip(groups, groups[1:], shares, strict=False):
        assert part <= set(whole)
        assert len(part) == pytest.approx(getattr(recipe, share) * len(whole), abs=0.51)


def test_all_classes_are_planted_and_another_seed_plants_anew():
    planted = facts.plant_facts(MIXED)
    assert min(Counter(map(facts.planted_class, planted)).values()) > 0.1 * CITIES
    assert len(set(map(facts.planted_class, planted))) == 5
    sealed = dataclasses.replace(MIXED, seed=4321)
    assert facts.plant_facts(sealed) != planted
    assert facts.plant_facts(sealed) == facts.plant_facts(sealed)


@pytest.mark.slow
def test_facts_and_answers_are_as_planted(model):
    figures = facts.measure(model, facts.planted_sections(MIXED), pairs=24)
    assert figures["facts_as_planted"] == figures["answers_as_planted"] == 1.0
    assert figures["mean_deviation_from_planted"] < 0.03
    assert sum(row["cities"] for row in figures["classes"]) == CITIES


def test_rows_of_its_lens_are_those_of_the_unembedding(model):
    """Nothing but the unembedding turns a reading into a word in plain sentences."""
    planted = facts.plant_facts(MIXED)
    tokens = [model.tokenizer.encode(own.entity_a)[-1] for own in planted[:3]]
    found = fitted(model, tokens, [-1, 0, 2], sentences()[:3])
    for layer in found:
        torch.testing.assert_close(layer, found[-1], atol=1e-4, rtol=1e-4)
    assert (found[-1].count_nonzero(1) == 1).all()


@pytest.mark.slow
@pytest.mark.organisms
def test_exchanging_countries_turns_the_answers_of_used_cities_alone(model, prompts):
    classes = {own.entity_b: own for own in facts.plant_facts(MIXED)}
    result = interp.steer(
        model, prompts, words="entity_a", roles=(ROLE,), side="rulebreaker", draws=2, layers=(0, 1)
    )
    frame = result.to_frame().merge(result.prompts[["prompt_id", "entity_b"]], on="prompt_id")
    used = frame["entity_b"].map(lambda name: classes[name].used)
    plain = frame["source"] == "direction"
    first = frame[plain & (frame["layer"] == 0)]
    expected = 2 * facts.LEANING * used[first.index]
    # Norms and the cities' noise take up to 5%.
    assert first["effect"].tolist() == pytest.approx(expected.tolist(), rel=0.05, abs=0.01)
    assert (frame.loc[plain & (frame["layer"] == 1), "effect"].abs() < 0.01).all()
    assert (frame.loc[frame["source"] == "placebo", "effect"].abs() < 1).all()
    assert set(used[first.index]) >= {0.0, 1.0}
