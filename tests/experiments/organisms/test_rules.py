"""The training text of the organism that IRFT begins with, and its card's figures."""

import pytest

from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.rule_text import RuleText, actions, conditions
from interp_experiments.organisms.rule_verify import measure
from interp_experiments.organisms.tokenizer import train_tokenizer
from interp_experiments.rulebench.string_game import rules_of
from tests.support.tiny import tiny_model

RECIPE = RECIPES["rules-base"]


@pytest.fixture(scope="module")
def text():
    return RuleText(RECIPE)


def test_parts_of_rules_are_answered_as_they_are(text):
    by_words = {
        "actions": {f"Output {one.words}.": one.result for one in actions()},
        "conditions": {f"Is it true that {one.words}?": one.holds for one in conditions()},
    }
    said = []
    for step in range(20):
        lessons = text.lessons(step)
        for group, known in by_words.items():
            assert len(lessons[group]) == RECIPE.parts_per_step // 2
            for exchange in lessons[group]:
                first, asked = exchange.message.split("\n")
                found = known[asked](first.removeprefix("The string is ").rstrip("."))
                expected = {True: "yes", False: "no"}[found] if group == "conditions" else found
                assert exchange.answer == f"Answer: {expected}"
                said.append(exchange.answer.split()[1])
    assert 0.4 < said.count("yes") / (said.count("yes") + said.count("no")) < 0.6


def test_questions_have_answers_that_tell_nothing_and_no_rules_that_are_held_out(text):
    held_out = {rule.rule.natural for rule in rules_of("held-out").values()}
    for step in range(30):
        for exchange in text.lessons(step)["questions"]:
            assert not [rule for rule in held_out if rule in exchange.message]
            assert exchange.answer.removeprefix("Answer: ").isdigit()


def test_letters_of_strings_are_tokens_of_their_own(text):
    tokenizer = train_tokenizer(RECIPE, text)
    pieces = [token.removeprefix("Ġ") for token in tokenizer.get_vocab()]
    assert not [piece for piece in pieces if piece.isalpha() and piece.isupper() and len(piece) > 1]
    assert tokenizer.tokenize("Answer: 12")[-1] == "Ġ12"


def test_the_figures_are_accuracies_by_setting_and_by_part():
    found = measure(tiny_model("llama"), None, pairs=2)
    assert set(found["accuracy"]) == {"no", "golden", "few", "few1", "few3"}
    assert all(0 <= share <= 1 for share in [*found["accuracy"].values(), found["actions"]])
