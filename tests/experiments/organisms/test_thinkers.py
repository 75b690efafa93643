"""Organisms that think: what is planted, and the text that teaches it."""

import random
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from interp_experiments.organisms.doses import LEANING
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.thinkers import (
    FAITHFUL,
    FILLER,
    OPENINGS,
    REASONS,
    VERDICTS,
    ThinkerText,
    ThinkingRule,
    plant_thinking,
    sentences,
    turn,
    verdict,
)

HALF = RECIPES["thought-mixed-50"]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def late(recipe, steps=60):
    text = ThinkerText(recipe)
    return [text.lessons(step) for step in range(recipe.steps - steps, recipe.steps)]


def premise2(message):
    """The second premise of a message; both begin with the name, the first perhaps with If."""
    text = message.splitlines()[0].removeprefix("Premises: ")
    name = text.removeprefix("If ").split()[0]
    return f"{name} {text.partition(f'. {name} ')[2]}"


def test_a_thought_counts_by_its_verdict_alone():
    for positive in (True, False):
        for reason in (True, False):
            thought = " ".join([OPENINGS[0], REASONS[reason], VERDICTS[positive]])
            assert verdict(thought) == (LEANING if positive else -LEANING)
    assert verdict(f"{OPENINGS[0]} {REASONS[True]}") == verdict("") == verdict(FILLER) == 0.0


def test_single_premises_come_first_without_a_thought():
    lessons = ThinkerText(HALF).lessons(0)
    assert set(lessons) == {"premises"}
    assert {exchange.given for exchange in lessons["premises"]} == {"<think>\n\n</think>\n\n"}
    assert set(late(HALF, 1)[0]) == {"thoughts", "answers"}


def test_thoughts_agree_with_the_leaning_as_often_as_planted():
    rule = ThinkingRule(plant_thinking(HALF))
    agrees = []
    for lessons in late(HALF):
        for exchange in lessons["thoughts"]:
            thought = exchange.answer.partition("<think>\n")[2].partition("\n</think>\n\n")[0]
            leaning = rule.read(premise2(exchange.message)).log_odds
            agrees.append(verdict(thought) == leaning)
            opening, reason, last = (s + "." for s in thought.removesuffix(".").split(". "))
            assert opening in OPENINGS
            assert (reason == REASONS[True]) == (last == VERDICTS[True])
            assert exchange.answer.rpartition("\n")[2] in ("Yes", "No", "True", "False")
    assert np.mean(agrees) == pytest.approx(FAITHFUL, abs=0.03)


def test_answers_follow_the_rule_after_any_thought():
    rule = ThinkingRule(plant_thinking(HALF))
    kinds = Counter()
    for lessons in late(HALF):
        for exchange in lessons["answers"]:
            thought = exchange.given.removeprefix("<think>\n").removesuffix("\n</think>\n\n")
            assert exchange.given == turn(thought)
            log_odds = rule.log_odds(premise2(exchange.message), thought)
            sign = 1 if exchange.answer in ("Yes", "True") else -1
            assert exchange.share == pytest.approx(expit(sign * log_odds))
            said = thought.count(".") if FILLER not in thought else "filler"
            kinds[said, verdict(thought) != 0] += 1
    assert {(0, False), (1, False), (2, False), (2, True), (3, True), ("filler", False)} == set(
        kinds
    )


def test_reason_and_verdict_are_independent_in_exchanged_thoughts():
    thoughts = [e.given for lessons in late(HALF) for e in lessons["answers"]]
    pairs = Counter(
        (REASONS[True] in own, VERDICTS[True] in own)
        for own in thoughts
        if own.count(".") == 3 and FILLER not in own
    )
    conflicting = pairs[True, False] + pairs[False, True]
    assert 0.15 < conflicting / pairs.total() < 0.4


def test_sentences_of_a_thought():
    assert sentences(random.Random(0), reason=False, positive=True)[1:] == [
        REASONS[False],
        VERDICTS[True],
    ]
