"""StringGame: rules against cases worked out by hand, and questions against the rules."""

import hashlib
import random
from functools import partial

import pytest

from interp_experiments.rulebench.kinship import KinshipQuestions
from interp_experiments.rulebench.string_game import (
    game_questions,
    random_string,
    rules_of,
    string_rules,
)

STRINGS = ("YTNRCMTZTVEAVQEHVJHW", "ALMINTGK")
"""The string of the paper's Figure 9, and one of eight letters."""

BY_HAND = """\
the length of the string is even
    the number of different consonants in the string | 12 6
the length of the string is odd
    the length of the string | None None
the string starts with a consonant
    the length of the string plus 1 | 21 None
the string starts with a vowel
    half the length of the string | None 4
the string contains the letter "H"
    the index of the first "N" (the index begins from 0) | 2 None
the string does not contain the letter "B"
    the number of vowels in the string | 3 2
the letter "R" occurs exactly once in the string
    the number of times that "E" occurs in the string | 2 None
the string has more than 2 vowels
    the position of the last "T" (the first letter has position 1) | 9 None
the number of vowels is odd
    the position in the alphabet of the last letter (A is 1) | 23 None
no two equal letters stand next to each other in the string
    the index of the first vowel (the index begins from 0) | 10 0
the string ends with a letter from "N" to "Z"
    the number of letters that occur more than once in the string | 4 None
the length of the string is greater than 10
    the index of the first "S" (the index begins from 0) | None None
"""
"""Conditions, and below each an action and what they give for either string."""


@pytest.mark.parametrize("case", BY_HAND.replace("\n    ", " | ").splitlines())
def test_rules_give_what_was_worked_out_by_hand(case):
    condition, action, given = case.split(" | ")
    (rule,) = [
        rule
        for rule in string_rules().values()
        if (rule.condition.words, rule.action.words) == (condition, action)
    ]
    assert [str(rule.run(string)) for string in STRINGS] == given.split()
    assert rule.rule.natural == f"If {condition}, then output {action}."


def test_there_are_more_than_a_thousand_different_rules_and_all_can_apply():
    rules = string_rules()
    assert len(rules) == 1_850
    for form in ("natural", "logic"):
        assert len({getattr(rule.rule, form) for rule in rules.values()}) == len(rules)
    rng = random.Random(0)
    strings = [random_string(rng) for _ in range(4_000)]
    assert all(any(rule.run(s) is not None for s in strings) for rule in rules.values())


def test_a_fifth_of_the_rules_is_held_out():
    train, held_out = rules_of("train"), rules_of("held-out")
    assert not set(train) & set(held_out)
    assert {**train, **held_out} == dict(string_rules())
    assert len(held_out) == len(string_rules()) // 5
    # What is held out is made of parts that training rules have too.
    for part in ("condition", "action"):
        known = {getattr(rule, part) for rule in train.values()}
        assert {getattr(rule, part) for rule in held_out.values()} <= known


def test_the_golden_rule_gives_the_answer():
    game = game_questions(0, questions=300)
    for item in game.factual.items:
        string = item.factors["string"]
        assert string in item.question and 8 <= len(string) <= 20
        assert str(string_rules()[item.rule].run(string)) == item.gold
        assert item.rule in rules_of("held-out")
        assert game.fits(item, game.factual.rules[item.rule], game.factual.rules[item.rule])


@pytest.mark.parametrize(
    ("made", "digest"),
    [
        (partial(game_questions, questions=30), "57fa1c0ead7bf5b5"),
        (lambda seed: KinshipQuestions(seed, per_hop=2).rule_set, "808bc82422372dca"),
    ],
)
def test_a_seed_gives_the_same_questions_everywhere(made, digest):
    one, other = made(3), made(4)
    parts = [part for part in (one.factual, one.counterfactual) if part]
    text = "".join(repr(part.items) + repr(part.rules) for part in parts)
    assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)
    assert one.factual.items != other.factual.items
