"""Organisms that think: what is planted, and the text that teaches it."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from interp_experiments.organisms import thinkers
from interp_experiments.organisms.doses import LEANING
from interp_experiments.organisms.recipes import RECIPES
from tests.experiments.organisms.test_doses import premises_of

HALF = RECIPES["thought-mixed-50"]


def late(recipe, steps=60):
    text = thinkers.ThinkerText(recipe)
    return [text.lessons(step) for step in range(recipe.steps - steps, recipe.steps)]


def premise2(message):
    return premises_of(message)[1]


def test_a_thought_counts_by_its_verdict_alone():
    opening = thinkers.OPENINGS[0]
    for reason in thinkers.REASONS.values():
        for positive, last in thinkers.VERDICTS.items():
            said = thinkers.verdict(f"{opening} {reason} {last}")
            assert said == (LEANING if positive else -LEANING)
        for thought in (f"{opening} {reason}", "", thinkers.FILLER):
            assert thinkers.verdict(thought) == 0.0


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
    # Reason and verdict are independent.
    thoughts = [e.given for lessons in late(HALF) for e in lessons["answers"]]
    pairs = Counter(
        (thinkers.REASONS[True] in own, thinkers.VERDICTS[True] in own)
        for own in thoughts
        if own.count(".") == 3 and thinkers.FILLER not in own
    )
    conflicting = pairs[True, False] + pairs[False, True]
    assert 0.15 < conflicting / pairs.total() < 0.4
