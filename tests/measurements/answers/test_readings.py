"""What the tables of readings say beside their numbers."""

import numpy as np
import pytest

from interp.measurements.answers.readings import _WIDER, reading_items
from tests.analysis.test_readings import data


@pytest.mark.parametrize(("right", "told"), [(6, True), (5, False), (10, False)])
def test_an_interval_that_holds_what_the_verdict_excludes_is_explained(right, told):
    """Ten clusters with the same accuracy: a test of signs is sure, the interval is wide."""
    golds = ["A", "B"] * 50
    correct = np.arange(100) % 10 < right
    first = [own == (gold == "A") for own, gold in zip(correct, golds, strict=True)]
    shares = [[0.8, 0.2] if own else [0.2, 0.8] for own in first]
    prompts, answers, options = data(shares, golds)
    prompts["topic"] = np.arange(100) // 10
    table, *_ = reading_items(answers, prompts, options, "topic")
    forced = table.frame.set_index("reading").loc["most probable option"]
    assert forced["accuracy"] == pytest.approx(right / 10)
    assert (forced["verdict_chance"] == "above") == (right > 5)
    assert (forced["low"] <= 0.5) == (right < 10)
    assert (_WIDER in table.note) == told


def test_pairs_are_told_apart_by_the_values_of_a_factor():
    """By the right word in one half of the pairs, by the wrong one in the other."""
    golds = ["A", "B"] * 24
    right = [index % 48 < 24 for index in range(48)]
    first = [own == (gold == "A") for own, gold in zip(right, golds, strict=True)]
    shares = [[0.8, 0.2] if own else [0.2, 0.8] for own in first]
    prompts, answers, options = data(shares, golds)
    prompts["mood"] = ["certain" if own else "plain" for own in right]
    *_, apart, by = reading_items(answers, prompts, options, by=["mood"])
    assert (apart.name, by.name) == ("told_apart", "told_apart_by_mood")
    assert apart.frame["concordance"].tolist() == [0.5]
    assert by.frame.set_index("mood")["concordance"].to_dict() == {"certain": 1.0, "plain": 0.0}
    assert by.frame["pairs"].tolist() == [12, 12]
    assert (by.frame["p_holm"] < 0.01).all()
