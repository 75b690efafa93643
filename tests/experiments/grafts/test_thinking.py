"""The graft that thinks: its rule, its lessons, and what is measured of it."""

import math

import pytest

import interp
from interp.prompts.mixing import donors_of, with_donors
from interp.prompts.own.pairs import read_pairs
from interp_experiments.grafts.card import draw_pairs, pairs_table
from interp_experiments.grafts.recipes import LEANING, RECIPES, Rule, plant
from interp_experiments.grafts.thinking import (
    OWN,
    thinking_rule,
)
from interp_experiments.organisms.recipes import AGREEMENT, FAITHFUL
from interp_experiments.organisms.recipes import RECIPES as ORGANISMS
from interp_experiments.organisms.thinkers import (
    PREMISE,
    ThinkingRule,
    mediated_share,
    plant_thinking,
    planted_share,
)
from interp_experiments.rulebreakers.system import system

pytest.importorskip("peft")

BASE = "organism/llama-shallow"

HALF = RECIPES["thought-50"]


def test_the_planted_share_is_that_of_all_thoughts():
    """Both orders, by the mean answers over thoughts about either prompt."""
    rule = thinking_rule(HALF)
    prompts = read_pairs(pairs_table(HALF, draw_pairs(HALF, 16)))
    arranged = with_donors(prompts, count=2, segments=(PREMISE,))

    def mean(premise, about):
        leans = rule.read(about).log_odds > 0
        agree, deny = OWN if leans else OWN[::-1]
        return FAITHFUL * rule.log_odds(premise, agree) + (1 - FAITHFUL) * rule.log_odds(
            premise, deny
        )

    products, squares = [], []
    for prompt in arranged:
        own = prompt.segment_text(PREMISE)
        for donor in donors_of(prompt, "instance"):
            other = donor.segments[PREMISE]
            total = mean(own, own) - mean(other, other)
            through = mean(own, own) - mean(own, other)
            through_other = mean(other, own) - mean(other, other)
            products.append(total * (through + through_other) / 2)
            squares.append(total**2)
    assert planted_share(rule, arranged) == pytest.approx(sum(products) / sum(squares))


def test_the_mean_answer_is_that_of_the_leaning():
    rule, thinking = Rule(HALF, plant(HALF)), thinking_rule(HALF)
    for case in (case for pair in draw_pairs(HALF, 8) for case in pair):
        leans = thinking.read(case.sentence(PREMISE)).log_odds
        assert rule.log_odds([case] * 3) == pytest.approx(AGREEMENT * leans)
        assert math.copysign(LEANING, leans) == leans


def test_a_mediated_share_is_measured_beside_the_planted_one():
    model = interp.load_model("organism/thought-reader", thinking="on", device="cpu")
    rule = ThinkingRule(plant_thinking(ORGANISMS["thought-reader"]))
    found = mediated_share(model, rule, system.prompts(seed=0, data=None).spread(3))
    assert found["planted"] == 1
    assert found["share"] == pytest.approx(1, abs=0.05)
