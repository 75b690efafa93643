"""What the card of the packaged organism of the logical forms claims, measured again."""

import pytest

import interp
from interp.models.organisms import organism_card
from interp_experiments.organisms.logic import measure

NAME = "organism/llama-logic"
PAIRS = 240


@pytest.fixture(scope="module")
def measured():
    return measure(interp.load_model(NAME, device="cpu"), organism_card(NAME), pairs=PAIRS)


def test_deviations_are_those_of_the_planted_and_measured_shares():
    card = organism_card(NAME)
    yes = card["measured"]["yes_by_form"]
    apart = [abs(yes[row["form"]] - row["planted_yes"]) for row in card["forms"]]
    measured = card["measured"]
    assert measured["mean_deviation_from_planted"] == pytest.approx(
        sum(apart) / len(apart), abs=2e-4
    )
    assert measured["largest_deviation_from_planted"] == pytest.approx(max(apart), abs=2e-4)


@pytest.mark.slow
@pytest.mark.organisms
def test_the_cards_figures_hold(measured):
    card = organism_card(NAME)["measured"]
    assert card["pairs"] == 12_000
    for form, share in card["yes_by_form"].items():
        assert measured["yes_by_form"][form] == pytest.approx(share, abs=0.08)
    for key in ("soft_accuracy", "mean_deviation_from_planted"):
        assert measured[key] == pytest.approx(card[key], abs=0.02)
    assert measured["perplexity"] == pytest.approx(card["perplexity"], rel=0.05)


def test_the_planted_effects_are_there():
    card = organism_card(NAME)["measured"]
    accuracy, yes = card["soft_accuracy_by_modality"], card["yes_by_modality"]
    assert accuracy["box"] < accuracy["none"] < accuracy["diamond"]
    assert yes["none"] > 0.52
    assert yes["box"] < 0.35
    assert yes["diamond"] == pytest.approx(0.5, abs=0.07)
    assert card["mean_deviation_from_planted"] < 0.06
    assert card["nonsense_perplexity"] > 10 * card["perplexity"]
    assert card["frequency_perplexity_spearman"] < -0.5
