"""What the card of the packaged organism of RobustLR claims, measured again."""

import math
import re

import pytest

import interp
from interp.models.organisms import organism_card
from interp_experiments.organisms.theories import measure

NAME = "organism/theories"
THEORIES = 120


@pytest.fixture(scope="module")
def measured():
    return measure(interp.load_model(NAME, device="cpu"), organism_card(NAME), pairs=THEORIES)


def test_the_card_says_that_its_recipe_does_not_give_these_weights():
    assert re.search(r"reproduce.*weights", organism_card(NAME)["trained"]["note"])


@pytest.mark.slow
@pytest.mark.organisms
def test_the_cards_figures_hold(measured):
    """Up to four standard errors of a sample; of sets, over their theories."""
    card = organism_card(NAME)["measured"]
    assert card["theories"] == 600
    for key in ("in_domain", "with_other_sentences"):
        error = math.sqrt(card[key] * (1 - card[key]) / THEORIES)
        assert measured[key] == pytest.approx(card[key], abs=4 * error)
    assert measured["f1"].keys() == card["f1"].keys()
    for name, score in card["f1"].items():
        assert measured["f1"][name] == pytest.approx(score, abs=4 * 0.5 / math.sqrt(THEORIES / 6))


def test_it_is_right_in_domain_and_falls_on_the_contrast_sets():
    card = organism_card(NAME)["measured"]
    assert card["in_domain"] >= 0.9
    assert max(card["f1"][name] for name in ("C-CS", "D-CS", "N-CS")) < 0.65
    assert max(card["consistency"][name] for name in ("C-CS", "D-CS", "N-CS")) == 0
