"""The share of a graft's answers that passes through its thought is near what was planted."""

import pytest

import interp
from interp_experiments.grafts.card import measure
from interp_experiments.grafts.recipes import recipe
from tests.real.test_grafts import THINKING


def test_the_mediated_share_is_near_the_planted_one(file):
    """Its interval needs ten cities, which take longer; the card has it."""
    pytest.importorskip("peft")
    graft = interp.load_model(THINKING, base=str(file), device="cpu")
    found = measure(graft, recipe("thought-50"), pairs=3)
    assert found["answers_as_planted"] > 0.95
    assert found["mean_deviation_from_planted"] < 0.25
    share = found["mediated_share"]
    assert share["share"] == pytest.approx(share["planted"], abs=0.15)
