"""Grafts on their base: exact effects are near what was planted."""

import pytest

import interp
from interp.models.packaged import GRAFTS
from interp_experiments.grafts.card import measure
from interp_experiments.grafts.recipes import recipe

THINKING = "graft/thought-50"


@pytest.mark.parametrize("name", [name for name in GRAFTS.names() if name != THINKING])
def test_effects_are_near_the_planted_ones(file, name):
    pytest.importorskip("peft")
    graft = interp.load_model(name, base=str(file), device="cpu")
    found = measure(graft, recipe(name.removeprefix(GRAFTS.prefix)), pairs=4, donors=1)
    assert found["answers_as_planted"] == 1
    assert found["mean_deviation_from_planted"] < 0.15


def test_the_mediated_share_is_near_the_planted_one(file):
    """Its interval needs ten cities, which take longer; the card has it."""
    pytest.importorskip("peft")
    graft = interp.load_model(THINKING, base=str(file), device="cpu")
    found = measure(graft, recipe("thought-50"), pairs=3)
    assert found["answers_as_planted"] > 0.95
    assert found["mean_deviation_from_planted"] < 0.25
    share = found["mediated_share"]
    assert share["share"] == pytest.approx(share["planted"], abs=0.15)
