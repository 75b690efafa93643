"""One estimate per model, pooled: against scipy's tests and the prediction interval by hand."""

import re

import numpy as np
import pytest
from scipy import stats

from interp_experiments.logical_forms.mixed.means import pool

ESTIMATES = np.array([0.10, 0.22, 0.35, 0.15, -0.02])
ERRORS = np.array([0.03, 0.05, 0.04, 0.03, 0.06])


def test_five_models_by_hand():
    found = pool(ESTIMATES, ERRORS)
    expected = stats.ttest_1samp(ESTIMATES, 0)
    further = stats.t.ppf(0.975, 4) * ESTIMATES.std(ddof=1) * np.sqrt(6 / 5)
    for names, numbers in (
        (("estimate", "p", "t"), (0.16, expected.pvalue, expected.statistic)),
        (("low", "high"), expected.confidence_interval(0.95)),
        (("excluded_below", "excluded_above"), expected.confidence_interval(0.9)),
        (("predicted_low", "predicted_high"), (0.16 - further, 0.16 + further)),
        (("models", "df", "same_sign"), (5, 4, 4)),
    ):
        assert [found[name] for name in names] == pytest.approx(list(numbers))
    assert found["note"] == ""


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_models_that_are_all_the_same_have_no_interval_of_rounding(value):
    found = pool(np.full(3, value), np.full(3, 0.1))
    assert found["estimate"] == pytest.approx(value)
    names = ("low", "p", "excluded_below", "predicted_low")
    assert np.isnan([found[name] for name in names]).all()
    assert re.search(r"interval: .*estimate", found["note"])


def test_one_model_is_not_pooled():
    found = pool(np.array([0.2, 0.3]), np.array([0.1, np.nan]))
    assert np.isnan([found["estimate"], found["p"], found["predicted_low"]]).all()
    assert re.fullmatch("undefined: .*1 of .*2 models", found["note"])
