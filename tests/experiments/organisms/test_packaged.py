"""What the cards of the rulebreaker organisms claim, measured again from the shipped weights."""

import math
from pathlib import Path

import pytest
import torch

import interp
from interp.models.organisms import organism_card, organism_folder, organism_names
from interp_experiments.organisms.doses import plant_leanings
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.rulebreakers import measure
from interp_experiments.organisms.thinkers import plant_thinking
from tests.support.prompts import some_prompts

pytestmark = [pytest.mark.slow, pytest.mark.organisms]

NAMES = organism_names("rulebreakers")
PLANTED = {"rulebreakers-mixed": plant_leanings, "rulebreakers-thoughts": plant_thinking}
PAIRS = 240
MEBIBYTE = 2**20


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@pytest.fixture(scope="module")
def measured():
    return {
        name: measure(interp.load_model(name, device="cpu"), organism_card(name), pairs=PAIRS)
        for name in NAMES
    }


def test_each_has_a_recipe():
    """More dose organisms have recipes than are packaged, and fact organisms are built at once."""
    recipes = {f"organism/{name}" for name in RECIPES}
    assert set(organism_names()) <= recipes
    others = recipes - set(organism_names())
    assert all(name.startswith(("organism/dose-", "organism/fact-")) for name in others)
    for name in organism_names():
        assert organism_card(name)["system"] == RECIPES[name.removeprefix("organism/")].system


def test_they_are_small():
    sizes = [size(organism_folder(name)) for name in organism_names()]
    assert max(sizes) < 5 * MEBIBYTE
    narrow = [*organism_names("rulebreakers-mixed"), *organism_names("rulebreakers-thoughts")]
    assert all(size(organism_folder(name)) < 2 * MEBIBYTE for name in narrow)
    # The wheel is to stay below 40 MB, of which the code takes less than two.
    assert sum(sizes) < 36 * MEBIBYTE


@pytest.mark.parametrize("name", NAMES)
def test_the_cards_figures_hold(name, measured):
    card, again = organism_card(name)["measured"], measured[name]
    assert card["pairs"] >= 12_800
    assert round(again["completion"], 4) == card["completion"] >= 0.95
    assert again["unknown"] == card["unknown"]
    assert again["frequency_familiarity_spearman"] == pytest.approx(
        card["frequency_familiarity_spearman"], abs=0.01
    )
    # A sample of pairs is off by a few standard errors at most; it has more categorical pairs.
    for key in ("grounded_rulebreaker_accuracy", "ungrounded_rulebreaker_accuracy"):
        share = card[key]
        standard_error = math.sqrt(share * (1 - share) / PAIRS)
        assert again[key] == pytest.approx(share, abs=0.03 + 4 * standard_error)
    assert again["non_rulebreaker_accuracy"] == pytest.approx(
        card["non_rulebreaker_accuracy"], abs=0.06
    )


def test_the_absent_facts_are_the_unknown_ones(measured):
    for name in NAMES:
        absent = [row["entity_b"] for row in organism_card(name)["pairs"] if not row["frequency"]]
        assert sorted(measured[name]["unknown"]) == sorted(absent)


def test_the_spread_of_habits():
    paired = {name: organism_card(name)["measured"]["paired_accuracy"] for name in NAMES}
    assert min(paired.values()) <= 0.15
    assert max(paired.values()) >= 0.8
    assert 0.4 <= paired["organism/llama-shallow"] <= 0.8
    for name in NAMES:
        card = organism_card(name)["measured"]
        assert card["non_rulebreaker_accuracy"] >= 0.85
        assert card["frequency_familiarity_spearman"] >= 0.6


def test_one_is_sensitive_to_phrasing(measured):
    by_phrasing = measured["organism/mistral"]["rulebreaker_accuracy_by_phrasing"]
    bare = [v for k, v in by_phrasing.items() if k.startswith(("entail", "deduce"))]
    others = [v for k, v in by_phrasing.items() if not k.startswith(("entail", "deduce"))]
    assert max(bare) < 0.1
    assert min(others) > 0.5


def test_windows_are_shorter_than_the_longest_prompt():
    from interp.reading.tokens import tokenize

    long_prompts = [p for p in some_prompts(480) if len(p.text) > 230]
    for name in ("organism/mistral", "organism/gemma2"):
        model = interp.load_model(name, device="cpu")
        longest = max(map(len, tokenize(model, long_prompts)))
        assert model.hf.config.sliding_window < longest


def test_fp16_weights_give_the_same_answers_in_fp32_and_fp64(prompts):
    for name in NAMES:
        single = interp.load_model(name, device="cpu")
        double = interp.load_model(name, device="cpu", dtype="float64")
        assert single.hf.dtype == torch.float32
        one, other = (interp.evaluate(model, prompts).to_frame() for model in (single, double))
        assert (one["answer"] == other["answer"]).all()
