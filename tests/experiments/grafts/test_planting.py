"""Grafts: what is planted, its Shapley values, and the pairs that show it."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from interp.attribution.games import shapley_values
from interp.errors import UserError
from interp.prompts.mixing import donors_of, with_donors
from interp.prompts.own.pairs import read_pairs
from interp_experiments.grafts.__main__ import main
from interp_experiments.grafts.card import draw_pairs, pairs_table, planted_effects
from interp_experiments.grafts.recipes import LEANING, RECIPES, Rule, plant, recipe
from interp_experiments.grafts.text import (
    COUNTRIES,
    OPENINGS,
    SEGMENTS,
    Case,
    known_pairs,
    message,
)

CAPITALS = {pair.entity_a: pair.entity_b for pair in known_pairs()}


def case(country="France", city="Paris", opening="If"):
    return Case(opening, ("Anne", "she"), "has been to", country, city)


def test_every_country_has_one_city():
    assert sorted(CAPITALS) == sorted(COUNTRIES)
    assert len({*CAPITALS.values()}) == len(COUNTRIES)


def test_a_prompt_has_a_sentence_of_each_case():
    text = message([case(), case(city="Rome"), case(country="Peru")])
    assert text.splitlines()[:3] == [
        "If Anne has been to France, then she has not been to Paris.",
        "Anne has been to Rome.",
        "Anne has not been to Peru.",
    ]


@pytest.mark.parametrize("name", RECIPES)
def test_half_lean_to_each_answer_and_another_seed_plants_anew(name):
    planted = plant(recipe(name))
    leanings = Counter(own.log_odds for own in planted)
    assert leanings == dict.fromkeys((LEANING, -LEANING), len(planted) / 2)
    sealed = dataclasses.replace(recipe(name), seed=4321)
    assert plant(sealed) != planted
    assert plant(recipe(name)) == planted


def test_a_known_fact_rejects_its_rulebreaker_alone():
    own = recipe("knowledge")
    rule = Rule(own, plant(own))
    known = {one.name for one in plant(own) if one.log_odds < 0}
    for country, city in CAPITALS.items():
        other = next(name for name in COUNTRIES if name != country)
        expected = -LEANING if city in known else LEANING
        assert rule.log_odds([case(country, city)] * 3) == expected
        assert rule.log_odds([case(other, city)] * 3) == LEANING


def test_the_wording_of_premise_1_alone_counts():
    own = recipe("wording")
    rule = Rule(own, plant(own))
    found = {
        opening: {
            rule.log_odds([case(country, city, opening), case("Peru", "Rome"), case()])
            for country, city in CAPITALS.items()
        }
        for opening in OPENINGS
    }
    assert found == {one.name: {one.log_odds} for one in plant(own)}


@pytest.mark.parametrize("name", RECIPES)
def test_the_planted_shapley_values_are_those_of_all_coalitions(name):
    own = recipe(name)
    rule, drawn = Rule(own, plant(own)), draw_pairs(own, 16)
    prompts = with_donors(read_pairs(pairs_table(own, drawn)), count=3, segments=SEGMENTS)
    cases = {one.sentence(part): one for pair in drawn for one in pair for part in SEGMENTS}
    planted = planted_effects(own, drawn, prompts)
    for prompt in prompts:
        sources = [
            [cases[donor.segments[part]] for part in SEGMENTS]
            for donor in donors_of(prompt, "instance")
        ]
        intact = [cases[prompt.segment_text(part)] for part in SEGMENTS]
        values = [
            [
                rule.log_odds([intact[i] if kept >> i & 1 else donor[i] for i in range(3)])
                for kept in range(8)
            ]
            for donor in sources
        ]
        expected = shapley_values(np.array(values)).mean(0)
        rows = planted[planted["prompt_id"] == prompt.id]
        assert rows["segment"].tolist() == list(SEGMENTS)
        np.testing.assert_allclose(rows["planted"], expected, atol=1e-12)
        assert set(rows["log_odds"]) == {rule.log_odds(intact)}


@pytest.mark.parametrize("name", RECIPES)
def test_pairs_differ_only_in_the_planted_cause(name, tmp_path):
    file = tmp_path / "pairs.csv"
    assert main(["pairs", name, "--pairs", "16", "--out", str(file)]) == 0
    prompts = read_pairs(str(file))
    own = recipe(name)
    rule = Rule(own, plant(own))
    drawn = draw_pairs(own, 16)
    assert len(prompts) == 2 * len(drawn)
    varied = {"knowledge": "country", "wording": "opening"}.get(own.cause, "city")
    for (one, other), *sides in zip(drawn, prompts[::2], prompts[1::2], strict=True):
        assert [prompt.answer.gold for prompt in sides] == [
            "Yes" if rule.log_odds([case] * 3) > 0 else "No" for case in (one, other)
        ]
        assert dataclasses.replace(one, **{varied: getattr(other, varied)}) == other
        if own.cause != "knowledge":
            assert sides[0].answer.gold != sides[1].answer.gold


def test_unknown_grafts_are_refused(capsys):
    with pytest.raises(UserError, match="mixture-50"):
        recipe("mixture")
    assert main(["pairs", "mixture", "--out", "never.csv"]) == 2
    assert "mixture-50" in capsys.readouterr().err
