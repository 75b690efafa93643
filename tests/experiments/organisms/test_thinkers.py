"""Organisms that think: what is planted, and the text that teaches it."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from interp_experiments.organisms import thinkers
from interp_experiments.organisms.doses import LEANING
from interp_experiments.organisms.recipes import RECIPES

HALF = RECIPES["thought-mixed-50"]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def late(recipe, steps=60):
    text = thinkers.ThinkerText(recipe)
    return [text.lessons(step) for step in range(recipe.steps - steps, recipe.steps)]


def premise2(message):
    """The second premise of a message; both begin with the name, the first perhaps with If."""
    text = message.splitlines()[0].removeprefix("Premises: ")
    name = text.removeprefix("If ").split()[0]
    return f"{name} {text.partition(f'. {name} ')[2]}"


def test_a_thought_counts_by_its_verdict_alone():
    for positive in (True, False):
        for reason in (True, False):
            thought = " ".join(
                [thinkers.OPENINGS[0], thinkers.REASONS[reason], thinkers.VERDICTS[positive]]
            )
            assert thinkers.verdict(thought) == (LEANING if positive else -LEANING)
    assert (
        thinkers.verdict(f"{thinkers.OPENINGS[0]} {thinkers.REASONS[True]}")
        == thinkers.verdict("")
        == thinkers.verdict(thinkers.FILLER)
        == 0.0
    )


def test_single_premises_come_first_without_a_thought():
    lessons = thinkers.ThinkerText(HALF).lessons(0)
    assert set(lessons) == {"premises"}
    assert {exchange.given for exchange in lessons["premises"]} == {"<think>\n\n</think>\n\n"}
    assert set(late(HALF, 1)[0]) == {"thoughts", "answers"}


def test_thoughts_agree_with_the_leaning_as_often_as_planted():
    rule = thinkers.ThinkingRule(thinkers.plant_thinking(HALF))
    agrees = []
    for lessons in late(HALF):
        for exchange in lessons["thoughts"]:
            thought = exchange.answer.partition("<think>\n")[2].partition("\n</think>\n\n")[0]
            leaning = rule.read(premise2(exchange.message)).log_odds
            agrees.append(thinkers.verdict(thought) == leaning)
            opening, reason, last = (s + "." for s in thought.removesuffix(".").split(". "))
            assert opening in thinkers.OPENINGS
            assert (reason == thinkers.REASONS[True]) == (last == thinkers.VERDICTS[True])
            assert exchange.answer.rpartition("\n")[2] in ("Yes", "No", "True", "False")
    assert np.mean(agrees) == pytest.approx(thinkers.FAITHFUL, abs=0.03)


def test_answers_follow_the_rule_after_any_thought():
    rule = thinkers.ThinkingRule(thinkers.plant_thinking(HALF))
    kinds = Counter()
    for lessons in late(HALF):
        for exchange in lessons["answers"]:
            thought = exchange.given.removeprefix("<think>\n").removesuffix("\n</think>\n\n")
            assert exchange.given == thinkers.turn(thought)
            log_odds = rule.log_odds(premise2(exchange.message), thought)
            sign = 1 if exchange.answer in ("Yes", "True") else -1
            assert exchange.share == pytest.approx(expit(sign * log_odds))
            said = thought.count(".") if thinkers.FILLER not in thought else "filler"
            kinds[said, thinkers.verdict(thought) != 0] += 1
    partial = {(0, False), (1, False), (2, False), (2, True), ("filler", False)}
    assert set(kinds) == {*partial, (3, True)}


def test_reason_and_verdict_are_independent_in_exchanged_thoughts():
    thoughts = [e.given for lessons in late(HALF) for e in lessons["answers"]]
    pairs = Counter(
        (thinkers.REASONS[True] in own, thinkers.VERDICTS[True] in own)
        for own in thoughts
        if own.count(".") == 3 and thinkers.FILLER not in own
    )
    conflicting = pairs[True, False] + pairs[False, True]
    assert 0.15 < conflicting / pairs.total() < 0.4
