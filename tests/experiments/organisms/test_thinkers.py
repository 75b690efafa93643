"""Organisms that think: what is planted, and the text that teaches it."""

import dataclasses
import random
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from interp_experiments.organisms.doses import LEANING, PREMISES, spread_prompts
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.thinkers import (
    AGREEMENT,
    FAITHFUL,
    FILLER,
    OPENINGS,
    PREMISE,
    REASONS,
    VERDICTS,
    ThinkerText,
    ThinkingRule,
    plant_thinking,
    sentences,
    turn,
    verdict,
)
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.templates import CITIES, FAMILIES

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


@pytest.mark.parametrize("share", SHARES)
def test_the_planted_share_of_either_leaning_follows_the_thought(share):
    planted = {own.entity: own for own in plant_thinking(dataclasses.replace(HALF, share=share))}
    countries = [pair.entity_a for pair in entity_pairs() if pair.category == CITIES]
    types = [name for family in FAMILIES for name in family]
    for group in (countries, types):
        followers = sum(planted[entity].follows_thought for entity in group)
        assert followers == pytest.approx(share * len(group), abs=0.51)
    for leaning in (LEANING, -LEANING):
        own = [planted[entity] for entity in countries if planted[entity].log_odds == leaning]
        assert np.mean([one.follows_thought for one in own]) == pytest.approx(share, abs=0.02)
    for pair in entity_pairs():
        expected = dataclasses.replace(planted[pair.entity_a], entity=pair.entity_b)
        assert planted[pair.entity_b] == expected


def test_another_seed_plants_another_truth():
    sealed = dataclasses.replace(HALF, seed=4321)
    own, other = plant_thinking(HALF), plant_thinking(sealed)
    for field in ("log_odds", "follows_thought"):
        assert [getattr(e, field) for e in own] != [getattr(e, field) for e in other]


def test_a_thought_counts_by_its_verdict_alone():
    for positive in (True, False):
        for reason in (True, False):
            thought = " ".join([OPENINGS[0], REASONS[reason], VERDICTS[positive]])
            assert verdict(thought) == (LEANING if positive else -LEANING)
    assert verdict(f"{OPENINGS[0]} {REASONS[True]}") == verdict("") == verdict(FILLER) == 0.0


def test_the_mediated_share_is_planted_in_both_orders():
    """By the rule: exact means over thoughts, for every ordered pair of differing leanings."""
    rule = ThinkingRule(plant_thinking(HALF))
    premises = [p.segment_text(PREMISE) for p in spread_prompts(60)]

    def mean(x, about):
        """The mean log-odds of a prompt x after thoughts about a prompt."""
        leans = rule.read(about).log_odds > 0
        agree, deny = (" ".join(sentences_of(leans == agrees)) for agrees in (True, False))
        return FAITHFUL * rule.log_odds(x, agree) + (1 - FAITHFUL) * rule.log_odds(x, deny)

    def sentences_of(positive):
        return [OPENINGS[0], REASONS[positive], VERDICTS[positive]]

    for x in premises[::5]:
        own = mean(x, x)
        assert own == pytest.approx(AGREEMENT * rule.read(x).log_odds)
        others = [z for z in premises if rule.read(z).log_odds != rule.read(x).log_odds]
        for z in others[::9]:
            total = own - mean(z, z)
            assert (own - mean(x, z)) / total == rule.read(x).follows_thought
            assert (mean(z, x) - mean(z, z)) / total == rule.read(z).follows_thought


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


def test_premises_are_the_second_ones_of_the_data_set():
    rule = ThinkingRule(plant_thinking(HALF))
    assert PREMISES[1] == PREMISE
    for prompt in spread_prompts(12):
        named = prompt.factors["entity_b" if prompt.factors["rule"] == "mt" else "entity_a"]
        assert rule.read(prompt.segment_text(PREMISE)).entity == named


def test_sentences_of_a_thought():
    assert sentences(random.Random(0), reason=False, positive=True)[1:] == [
        REASONS[False],
        VERDICTS[True],
    ]
