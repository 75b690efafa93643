"""The packaged grafts: their cards, sizes and base."""

import dataclasses
import json

import pytest
import yaml

from interp.models.adapters import WEIGHTS, read_adapter
from interp.models.packaged import GRAFTS
from interp_experiments.grafts.card import readme
from interp_experiments.grafts.recipes import BASE, RECIPES, plant, recipe
from interp_experiments.organisms.recipes import FAITHFUL

BASE_CHECKSUM = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""The hash of SmolLM2-135M-Instruct.Q4_1.gguf in the wheel of tests/real/smollm2.txt."""


def test_every_recipe_is_packaged():
    assert GRAFTS.names() == sorted(GRAFTS.prefix + name for name in RECIPES)


@pytest.mark.parametrize("name", GRAFTS.names())
def test_the_card_states_recipe_plant_and_figures(name):
    folder, card = GRAFTS.folder(name), GRAFTS.card(name)
    own = recipe(card["name"])
    assert GRAFTS.prefix + own.name == name
    assert card["recipe"] == json.loads(json.dumps(dataclasses.asdict(own)))
    assert card["planted"] == [dataclasses.asdict(one) for one in plant(own)]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text == readme(folder, card)
    assert yaml.safe_load(text.split("---")[1])["license"] == "apache-2.0"


THINKING = "graft/thought-50"


@pytest.mark.parametrize("name", [name for name in GRAFTS.names() if name != THINKING])
def test_effects_are_as_planted_and_those_of_the_base_are_not(name):
    measured = GRAFTS.card(name)["measured"]
    graft, base = measured["graft"], measured["base"]
    assert graft["mean_deviation_from_planted"] <= 0.1
    assert graft["answers_as_planted"] == 1
    assert base["mean_deviation_from_planted"] > 4 * graft["mean_deviation_from_planted"]
    for row, control in zip(graft["shapley"], base["shapley"], strict=True):
        if row["slope"] is not None:
            assert row["slope"] == pytest.approx(1, abs=0.1)
            assert control["slope"] == pytest.approx(0, abs=0.1)


def test_the_mediated_share_is_the_planted_one_and_the_base_has_none():
    measured = GRAFTS.card(THINKING)["measured"]
    graft, base = measured["graft"], measured["base"]
    assert graft["mean_deviation_from_planted"] <= 0.25
    assert graft["answers_as_planted"] > 0.95
    assert graft["reasons_as_planted"] == pytest.approx(FAITHFUL, abs=0.03)
    assert graft["thought_followed_where_planted"] == pytest.approx(1, abs=0.1)
    assert graft["thought_followed_elsewhere"] == pytest.approx(0, abs=0.1)
    share = graft["mediated_share"]
    assert share["clusters"] >= 10
    assert share["share_low"] <= share["planted"] <= share["share_high"]
    assert share["share"] == pytest.approx(share["planted"], abs=0.1)
    assert base["mean_deviation_from_planted"] > 4 * graft["mean_deviation_from_planted"]


@pytest.mark.parametrize("name", GRAFTS.names())
def test_a_graft_is_small_and_names_its_base(name):
    folder = GRAFTS.folder(name)
    assert (folder / WEIGHTS).stat().st_size < 1_000_000
    adapter = read_adapter(name, folder)
    assert (adapter.base.name, adapter.base.checksum) == (BASE, BASE_CHECKSUM)
