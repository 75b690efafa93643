"""The packaged organisms for rules, before and after tuning on StringGame."""

import pytest

from interp.models.load import load_model
from interp.models.organisms import DEFAULT, default_organism, organism_card, organism_folder
from interp.training.folder import training_of
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.rules import measure

BASE, TUNED = "organism/rules-base", "organism/rules-irft"
MEBIBYTE = 2**20

QUESTIONS = 60


@pytest.mark.slow
@pytest.mark.parametrize("name", [BASE, TUNED])
def test_the_cards_figures_hold(name):
    card = organism_card(name)
    found = measure(load_model(name, device="cpu"), card, pairs=QUESTIONS)
    for setting, share in card["measured"]["accuracy"].items():
        # Four standard errors of a share of so many questions.
        assert found["accuracy"][setting] == pytest.approx(share, abs=0.25), setting
    assert found["actions"] == pytest.approx(card["measured"]["actions"], abs=0.25)
    assert sum(file.stat().st_size for file in organism_folder(name).iterdir()) < MEBIBYTE


def test_tuning_raises_accuracy_with_the_golden_rule_from_chance():
    base, tuned = (organism_card(name)["measured"] for name in (BASE, TUNED))
    assert base["questions"] == tuned["questions"] == 200
    # The most frequent answer, 0, is right in 0.15.
    assert all(share < 0.2 for share in base["accuracy"].values())
    assert min(base["actions"], base["conditions"]) > 0.9
    assert tuned["accuracy"]["golden"] >= 0.8
    assert tuned["accuracy"]["few1"] > base["accuracy"]["few1"] + 0.2


def test_the_tuned_one_says_what_it_was_tuned_from():
    record = training_of(TUNED)
    recipe = RECIPES["rules-irft"]
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
