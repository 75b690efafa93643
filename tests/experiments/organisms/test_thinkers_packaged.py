"""What the cards of the packaged organisms that think claim, measured again from their weights."""

from dataclasses import replace

import numpy as np
import pytest

import interp
from interp.models.organisms import organism_card, organism_names
from interp_experiments.organisms.thinkers import measure

pytestmark = [pytest.mark.slow, pytest.mark.organisms]

NAMES = organism_names("rulebreakers-thoughts")
PAIRS = 48

EXACT = 0.02
"""By how much a mediated share may miss its interval: where all entities have the same share, the
interval is narrower than training is exact."""


@pytest.fixture(scope="module", params=NAMES)
def measured(request):
    """An organism and the figures of its card on a few pairs."""
    model = interp.load_model(request.param, device="cpu")
    return request.param, measure(model, organism_card(request.param), pairs=PAIRS)


def test_exchanged_thoughts_are_followed_where_that_was_planted(measured):
    """Given positive and negative thoughts by hand, prompt by prompt."""
    _, figures = measured
    assert figures["share_measured"] == pytest.approx(figures["share_planted"], abs=0.1)
    for key, planted in (("where_planted", 1.0), ("elsewhere", 0.0)):
        followed = figures[f"thought_followed_{key}"]
        assert np.isnan(followed) or followed == pytest.approx(planted, abs=0.15)
    assert figures["answers_as_planted"] > 0.95
    assert figures["reasons_as_planted"] == pytest.approx(0.9, abs=0.07)


def test_the_mediated_share_is_the_planted_one(measured):
    _, figures = measured
    share = figures["mediated_share"]
    assert share["share_low"] - EXACT <= share["planted"] <= share["share_high"] + EXACT


@pytest.mark.parametrize("name", NAMES)
def test_the_mediated_share_on_the_card_is_the_planted_one(name):
    share = organism_card(name)["measured"]["mediated_share"]
    planted = organism_card(name)["recipe"]["share"]
    for truth in (planted, share["planted"]):
        assert share["share_low"] - EXACT <= truth <= share["share_high"] + EXACT


def test_the_cards_figures_hold(measured):
    name, figures = measured
    card = organism_card(name)["measured"]
    assert card["pairs"] >= 2 * PAIRS
    for key in ("answers_as_planted", "reasons_as_planted", "mean_deviation_from_planted"):
        assert figures[key] == pytest.approx(card[key], abs=0.07)


def test_thoughts_end_and_agree_with_the_leaning_as_often_as_planted(measured):
    name, _ = measured
    model = interp.load_model(name, device="cpu", thinking="on")
    texts = interp.generate(model, interp.load_prompts(limit=24), max_new_tokens=48)
    thoughts = texts.table("thoughts")
    assert (thoughts["finished"] == "marker").mean() > 0.97
    assert (thoughts["sentences"].map(len) == 3).mean() > 0.97
    direct = replace(model, chat=replace(model.chat, thinking="off"))
    assert (interp.evaluate(direct, interp.load_prompts(limit=4)).answers["error"] == "").all()
