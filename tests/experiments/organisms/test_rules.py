"""The training text of the organism that IRFT begins with, and its card's figures."""

from string import ascii_uppercase

import pytest

from interp_experiments.organisms.families import train_tokenizer
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.rules import (
    QUESTIONS_FROM,
    RuleText,
    actions,
    conditions,
    measure,
)
from interp_experiments.rulebench.string_game import rules_of
from tests.support.tiny import tiny_model

RECIPE = RECIPES["rules-base"]


@pytest.fixture(scope="module")
def text():
    return RuleText(RECIPE)


def test_parts_of_rules_are_answered_as_they_are(text):
    by_words = {
        "actions": {f"Output {one.words}.": one.of for one in actions()},
        "conditions": {f"Is it true that {one.words}?": one.of for one in conditions()},
    }
    said = {"yes": 0, "no": 0}
    for lessons in map(text.lessons, range(20)):
        assert len(lessons["actions"]) == RECIPE.actions_per_step
        assert len(lessons["conditions"]) == RECIPE.conditions_per_step
        for group, known in by_words.items():
            for exchange in lessons[group]:
                asked, string = asked_of(exchange)
                found = known[asked](string)
                if group == "conditions":
                    found = "yes" if found else "no"
                    said[found] += 1
                assert exchange.answer == f"Answer: {found}"
    assert 0.4 < said["yes"] / sum(said.values()) < 0.6


def test_lists_agree_with_the_actions_that_ask_for_one_of_their_lines(text):
    by_words = {action.words: action.of for action in actions()}
    asked_for = {
        "the number of times that each letter occurs in the string": (
            'the number of times that "A" occurs in the string'
        ),
        "the index of the first of each letter (the index begins from 0)": (
            'the index of the first "A" (the index begins from 0)'
        ),
        "the position of the last of each letter (the first letter has position 1)": (
            'the position of the last "B" (the first letter has position 1)'
        ),
    }
    totals = {
        "the number of vowels up to each letter": "the number of vowels in the string",
        "the number of different letters up to each letter": (
            "the number of different letters in the string"
        ),
        "the position in the alphabet of each letter (A is 1)": (
            "the position in the alphabet of the last letter (A is 1)"
        ),
    }
    seen = set()
    for step in range(20):
        for exchange in text.lessons(step)["lists"]:
            asked, string = asked_of(exchange)
            words = asked.removeprefix("List ").removesuffix(".")
            seen.add(words)
            lines = [line.split(" ") for line in exchange.answer.split("\n")]
            if words in totals:
                assert "".join(letter for letter, _ in lines) == string
                assert lines[-1][1] == str(by_words[totals[words]](string))
                continue
            assert "".join(letter for letter, _ in lines) == ascii_uppercase
            action = asked_for[words]
            result = by_words[action](string)
            assert dict(lines)[action.split('"')[1]] == ("no" if result is None else str(result))
    assert seen == {*asked_for, *totals}


def test_questions_have_answers_that_tell_nothing_and_no_rules_that_are_held_out(text):
    held_out = {rule.rule.natural for rule in rules_of("held-out").values()}
    first = int(QUESTIONS_FROM * RECIPE.steps)
    assert "questions" not in text.lessons(first - 1)
    for step in range(first, first + 30):
        for exchange in text.lessons(step)["questions"]:
            assert not [rule for rule in held_out if rule in exchange.message]
            assert exchange.answer.removeprefix("Answer: ").isdigit()


def asked_of(exchange):
    asked, string = exchange.message.split("\n")
    return asked, string.removeprefix("The string is ").rstrip(".")


@pytest.mark.slow
def test_letters_of_strings_are_tokens_of_their_own(text):
    tokenizer = train_tokenizer(RECIPE, text)
    pieces = [token.removeprefix("Ġ") for token in tokenizer.get_vocab()]
    assert not [piece for piece in pieces if piece.isalpha() and piece.isupper() and len(piece) > 1]
    assert tokenizer.tokenize("Answer: 12")[-1] == "Ġ12"


def test_the_figures_are_accuracies_by_setting_and_by_part():
    found = measure(tiny_model("llama"), {}, pairs=2)
    assert set(found["accuracy"]) == {"no", "golden", "few", "few1", "few3"}
    assert all(0 <= share <= 1 for share in [*found["accuracy"].values(), found["actions"]])
