import pytest

from interp_experiments.logical_forms.effect_sections import mixed_model
from tests.experiments.logical_forms.made_up import differences, made_up


def test_one_model_falls_back_and_says_so():
    rows = made_up(1)
    found = mixed_model(rows, "soft_accuracy")
    assert not isinstance(found, str)
    assert "least squares" in found.fit["note"][0]
    assert differences(found.tests, "modality")["none", "box"][0] == pytest.approx(0.2, abs=0.02)


def test_factors_that_cannot_be_told_apart_are_a_reason_not_a_crash():
    rows = made_up(1)
    why = mixed_model(rows[rows["modality"] == "box"], "soft_accuracy", factors=("modality",))
    assert "modality is box in every row" in str(why)
