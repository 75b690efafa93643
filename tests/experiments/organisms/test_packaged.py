"""What the cards of the packaged organisms claim, measured again from the shipped weights."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import interp
from interp.models.organisms import (
    DEFAULT,
    default_organism,
    organism_card,
    organism_folder,
    organism_names,
)
from interp.reading.tokens import tokenize
from interp.training.folder import training_of
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.tasks import _MODULES
from tests.support.prompts import some_prompts

ALONE = organism_names("rulebreakers")
THINK = organism_names("rulebreakers-thoughts")
BASE, TUNED = "organism/rules-base", "organism/rules-irft"
MEBIBYTE = 2**20

PAIRS = {
    "rulebreakers": 240,
    "logical-forms": 240,
    "rulebreakers-mixed": 24,
    "rulebreakers-thoughts": 48,
    "rulebench": 60,
    "robustlr": 120,
}
"""How many pairs, questions or theories are measured, by system."""

EXACT = 0.02
"""By how much a mean may miss its interval: where all entities have nearly the same value, the
interval is narrower than training is exact."""

slow = pytest.mark.slow
organisms = pytest.mark.organisms
_found = {}


def measured(name):
    """The figures of an organism's card on a few pairs, measured once."""
    if name not in _found:
        card, model = organism_card(name), interp.load_model(name, device="cpu")
        own = _MODULES[card["system"]]
        _found[name] = own.measure(model, card, pairs=PAIRS[card["system"]])
    return _found[name]


def share_error(share, count):
    return math.sqrt(share * (1 - share) / count)


def test_each_has_a_recipe():
    """More dose organisms have recipes than are packaged, and fact organisms are built at once."""
    recipes = {f"organism/{name}" for name in RECIPES}
    assert set(organism_names()) <= recipes
    others = recipes - set(organism_names())
    assert all(name.startswith(("organism/dose-", "organism/fact-")) for name in others)
    for name in organism_names():
        assert organism_card(name)["system"] == RECIPES[name.removeprefix("organism/")].system


def test_they_are_small():
    sizes = {
        name: sum(file.stat().st_size for file in organism_folder(name).iterdir())
        for name in organism_names()
    }
    assert max(sizes.values()) < 5 * MEBIBYTE
    narrow = [*organism_names("rulebreakers-mixed"), *THINK]
    assert all(sizes[name] < 2 * MEBIBYTE for name in narrow)
    assert max(sizes[name] for name in (BASE, TUNED)) < MEBIBYTE
    # The wheel is to stay below 40 MB, of which the code takes less than two.
    assert sum(sizes.values()) < 36 * MEBIBYTE


@slow
@organisms
@pytest.mark.parametrize("name", ALONE)
def test_figures_of_rulebreakers_hold(name):
    card, again = organism_card(name)["measured"], measured(name)
    assert card["pairs"] >= 12_800
    assert round(again["completion"], 4) == card["completion"] >= 0.95
    assert again["unknown"] == card["unknown"]
    absent = [row["entity_b"] for row in organism_card(name)["pairs"] if not row["frequency"]]
    assert sorted(again["unknown"]) == sorted(absent)
    # A sample of pairs is off by a few standard errors at most; it has more categorical pairs.
    within = {"frequency_familiarity_spearman": 0.01, "non_rulebreaker_accuracy": 0.06}
    for key in ("grounded_rulebreaker_accuracy", "ungrounded_rulebreaker_accuracy"):
        within[key] = 0.03 + 4 * share_error(card[key], PAIRS["rulebreakers"])
    for key, most in within.items():
        assert again[key] == pytest.approx(card[key], abs=most), key


PLANTED = ("answers_as_planted", "mean_deviation_from_planted")
SYSTEMS = {
    "rulebreakers-mixed": (*PLANTED, "larger_premise_as_planted", 0.05),
    "rulebreakers-thoughts": (*PLANTED, "reasons_as_planted", 0.07),
    "logical-forms": ("soft_accuracy", "mean_deviation_from_planted", 0.02),
}
"""Figures of the cards, and by how much a few pairs may be off."""


@slow
@organisms
@pytest.mark.parametrize("name", [name for system in SYSTEMS for name in organism_names(system)])
def test_figures_of_what_is_planted_hold(name):
    system, again = organism_card(name)["system"], measured(name)
    card, (*keys, within) = organism_card(name)["measured"], SYSTEMS[system]
    assert card["pairs"] >= 2 * PAIRS[system]
    for key in keys:
        assert again[key] == pytest.approx(card[key], abs=within), key
    if system == "logical-forms":
        assert card["pairs"] == 12_000
        assert again["yes_by_form"] == pytest.approx(card["yes_by_form"], abs=0.08)
        assert again["perplexity"] == pytest.approx(card["perplexity"], rel=0.05)


@slow
@organisms
def test_figures_of_theories_hold():
    """Up to four standard errors of a sample; of sets, over their theories."""
    card, again = organism_card("organism/theories")["measured"], measured("organism/theories")
    assert card["theories"] == 600
    for key in ("in_domain", "with_other_sentences"):
        error = share_error(card[key], PAIRS["robustlr"])
        assert again[key] == pytest.approx(card[key], abs=4 * error)
    within = 4 * 0.5 / math.sqrt(PAIRS["robustlr"] / 6)
    assert again["f1"] == pytest.approx(card["f1"], abs=within)


@slow
@pytest.mark.parametrize("name", [BASE, TUNED])
def test_figures_of_rules_hold(name):
    """Within four standard errors of a share of so many questions."""
    card, again = organism_card(name)["measured"], measured(name)
    assert again["accuracy"] == pytest.approx(card["accuracy"], abs=0.25)
    assert again["actions"] == pytest.approx(card["actions"], abs=0.25)


@slow
@organisms
@pytest.mark.parametrize("name", organism_names("rulebreakers-mixed"))
def test_measured_shapley_values_are_the_planted_ones(name):
    """The 95% interval of each mean, over entities, holds the mean that the rule implies.

    There is none where fewer than ten entities are decided by a premise.
    """
    figures = measured(name)
    rows = figures["shapley"]
    decisive = 1 if organism_card(name)["recipe"]["share"] in (0.0, 1.0) else 2
    assert len(rows) == 3 * decisive  # the segments of the prompts that a premise decides
    tested = [row for row in rows if not math.isnan(row["low"])]
    assert tested
    for row in tested:
        assert row["low"] - EXACT <= row["planted"] <= row["high"] + EXACT, row
    assert figures["mean_deviation_from_planted"] < 0.2
    assert figures["larger_premise_as_planted"] > 0.95
    assert figures["answers_as_planted"] > 0.98


@slow
@organisms
@pytest.mark.parametrize("name", THINK)
def test_exchanged_thoughts_are_followed_where_that_was_planted(name):
    """Given positive and negative thoughts by hand, prompt by prompt."""
    figures = measured(name)
    assert figures["share_measured"] == pytest.approx(figures["share_planted"], abs=0.1)
    for key, planted in (("where_planted", 1.0), ("elsewhere", 0.0)):
        followed = figures[f"thought_followed_{key}"]
        assert np.isnan(followed) or followed == pytest.approx(planted, abs=0.15)
    assert figures["answers_as_planted"] > 0.95
    assert figures["reasons_as_planted"] == pytest.approx(0.9, abs=0.07)
    share = figures["mediated_share"]
    assert share["share_low"] - EXACT <= share["planted"] <= share["share_high"] + EXACT


@slow
@organisms
@pytest.mark.parametrize("name", THINK)
def test_thoughts_end_and_agree_with_the_leaning_as_often_as_planted(name):
    model = interp.load_model(name, device="cpu", thinking="on")
    texts = interp.generate(model, interp.load_prompts(limit=24), max_new_tokens=48)
    thoughts = texts.table("thoughts")
    assert (thoughts["finished"] == "marker").mean() > 0.97
    assert (thoughts["sentences"].map(len) == 3).mean() > 0.97
    direct = replace(model, chat=replace(model.chat, thinking="off"))
    assert (interp.evaluate(direct, interp.load_prompts(limit=4)).answers["error"] == "").all()


@pytest.mark.parametrize("name", THINK)
def test_the_mediated_share_on_the_card_is_the_planted_one(name):
    share = organism_card(name)["measured"]["mediated_share"]
    planted = organism_card(name)["recipe"]["share"]
    for truth in (planted, share["planted"]):
        assert share["share_low"] - EXACT <= truth <= share["share_high"] + EXACT


def test_the_spread_of_habits():
    cards = {name: organism_card(name)["measured"] for name in ALONE}
    paired = {name: card["paired_accuracy"] for name, card in cards.items()}
    assert min(paired.values()) <= 0.15
    assert max(paired.values()) >= 0.8
    assert 0.4 <= paired["organism/llama-shallow"] <= 0.8
    for card in cards.values():
        assert card["non_rulebreaker_accuracy"] >= 0.85
        assert card["frequency_familiarity_spearman"] >= 0.6


@slow
@organisms
def test_one_is_sensitive_to_phrasing():
    by_phrasing = measured("organism/mistral")["rulebreaker_accuracy_by_phrasing"]
    bare = [v for k, v in by_phrasing.items() if k.startswith(("entail", "deduce"))]
    others = [v for k, v in by_phrasing.items() if not k.startswith(("entail", "deduce"))]
    assert max(bare) < 0.1
    assert min(others) > 0.5


@slow
@organisms
def test_windows_are_shorter_than_the_longest_prompt():
    long_prompts = [p for p in some_prompts(480) if len(p.text) > 230]
    for name in ("organism/mistral", "organism/gemma2"):
        model = interp.load_model(name, device="cpu")
        longest = max(map(len, tokenize(model, long_prompts)))
        assert model.hf.config.sliding_window < longest


@slow
@organisms
def test_fp16_weights_give_the_same_answers_in_fp32_and_fp64(prompts):
    for name in ALONE:
        single = interp.load_model(name, device="cpu")
        double = interp.load_model(name, device="cpu", dtype="float64")
        assert single.hf.dtype == torch.float32
        one, other = (interp.evaluate(model, prompts).to_frame() for model in (single, double))
        assert (one["answer"] == other["answer"]).all()


def test_the_planted_effects_on_logical_forms_are_there():
    whole = organism_card("organism/llama-logic")
    card = whole["measured"]
    apart = [abs(card["yes_by_form"][row["form"]] - row["planted_yes"]) for row in whole["forms"]]
    for key, value in (("mean", sum(apart) / len(apart)), ("largest", max(apart))):
        assert card[f"{key}_deviation_from_planted"] == pytest.approx(value, abs=2e-4)
    accuracy, yes = card["soft_accuracy_by_modality"], card["yes_by_modality"]
    assert accuracy["box"] < accuracy["none"] < accuracy["diamond"]
    assert yes["none"] > 0.52
    assert yes["box"] < 0.35
    assert yes["diamond"] == pytest.approx(0.5, abs=0.07)
    assert card["mean_deviation_from_planted"] < 0.06
    assert card["nonsense_perplexity"] > 10 * card["perplexity"]
    assert card["frequency_perplexity_spearman"] < -0.5


def test_theories_are_right_in_domain_and_fall_on_the_contrast_sets():
    card = organism_card("organism/theories")
    assert re.search(r"reproduce.*weights", card["trained"]["note"])
    figures, sets = card["measured"], ("C-CS", "D-CS", "N-CS")
    assert figures["in_domain"] >= 0.9
    assert max(figures["f1"][name] for name in sets) < 0.65
    assert max(figures["consistency"][name] for name in sets) == 0


def test_tuning_raises_accuracy_with_the_golden_rule_from_chance():
    base, tuned = (organism_card(name)["measured"] for name in (BASE, TUNED))
    assert base["questions"] == tuned["questions"] == 200
    # The most frequent answer, 0, is right in 0.15.
    assert all(share < 0.2 for share in base["accuracy"].values())
    assert min(base["actions"], base["conditions"]) > 0.9
    assert tuned["accuracy"]["golden"] >= 0.8
    assert tuned["accuracy"]["few1"] > base["accuracy"]["few1"] + 0.2
    record, recipe = training_of(TUNED), RECIPES["rules-irft"]
    assert record.training.model == BASE
    assert record.training.options["questions"] == recipe.questions
    assert record.training.options["noise"] == list(recipe.noise)
    assert record.steps == recipe.questions // recipe.prompts_per_step


def test_a_command_takes_an_organism_that_learned_its_prompts():
    assert default_organism("rulebreakers") == DEFAULT
    assert default_organism("logical-forms") == "organism/llama-logic"
    assert default_organism("robustlr-edits") == "organism/theories"
    assert default_organism("rulebench-string-game") == TUNED
    assert default_organism("riddles") == DEFAULT
