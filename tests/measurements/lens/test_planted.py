"""The ledger of organisms whose facts are known, retrieved and used as planted, city by city."""

import dataclasses

import pytest

import interp
from interp.prompts.systems import load_facts
from interp_experiments.organisms.facts import city_prompts, plant_facts, planted_class
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.train import train
from interp_probes.api import probe_knowledge

READ = "premise1_entity_b"
CHANGED = "premise1_entity_b+premise2_entity_b+conclusion_entity_b"
MIXED = RECIPES["fact-mixed"]

ENTRIES = {"rejected": "used", "used and still wrong": "used"}
"""The entries of planted classes with other names."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [MIXED.seed, 4321], ids=["recipe", "sealed"])
def test_the_entries_of_an_organism_are_those_planted(seed, tmp_path):
    recipe = dataclasses.replace(MIXED, seed=seed)
    train(recipe, tmp_path)
    model = interp.load_model(str(tmp_path), device="cpu", dtype="float32")
    prompts = list(city_prompts(60))
    wrong = [prompt for prompt in prompts if prompt.side == "rulebreaker"]
    about = {prompt.factors["entity_b"] for prompt in prompts}
    known = probe_knowledge(
        model, [fact for fact in load_facts("rulebreakers") if fact.factors["entity_b"] in about]
    )
    read = interp.lens(
        model, wrong, facts="rulebreakers", roles=(READ,), methods=("logit",), layers=(0, 1)
    )
    steered = interp.steer(
        model,
        prompts,
        words="entity_a",
        roles=(CHANGED,),
        side="rulebreaker",
        directions=("logit",),
        layers=(0,),
    )
    found = read.ledger(known, steered).set_index("prompt_id")
    planted = {own.entity_b: planted_class(own) for own in plant_facts(recipe)}
    truth = {prompt.id: planted[prompt.factors["entity_b"]] for prompt in wrong}
    expected = found.index.to_series().map(truth)
    assert len(found) > 50
    assert (found["correct"].astype(bool) == (expected == "rejected")).all()
    same = found["entry"] == expected.replace(ENTRIES)
    # A verdict errs in 5% by design.
    assert same.mean() > 0.9
    shares = read.ledger_shares(known, steered)
    failures = shares[shares["answered"] == "wrong"].set_index("entry")
    among = expected[expected != "rejected"].replace(ENTRIES)
    for entry, row in failures.iterrows():
        assert row["low"] <= (among == entry).mean() <= row["high"], entry
