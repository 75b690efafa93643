"""Random-effects meta-analysis over models: against a worked example, and on simulated data."""

import re

import numpy as np
import pytest
from scipy import optimize, stats

from interp_experiments.logical_forms.mixed.means import pool

ESTIMATES = np.array([0.10, 0.22, 0.35, 0.15, -0.02])
ERRORS = np.array([0.03, 0.05, 0.04, 0.03, 0.06])


def paule_mandel(estimates, errors):
    """tau squared."""

    def excess(tau2):
        weights = 1 / (errors**2 + tau2)
        mean = (weights * estimates).sum() / weights.sum()
        return (weights * (estimates - mean) ** 2).sum() - (len(estimates) - 1)

    return optimize.brentq(excess, 0, 1) if excess(0) > 0 else 0.0


def test_five_models_by_hand():
    found = pool(ESTIMATES, ERRORS)
    expected = stats.ttest_1samp(ESTIMATES, 0)
    assert found.estimate == pytest.approx(0.16)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert (found.p, found.t) == pytest.approx((expected.pvalue, expected.statistic))
    narrower = tuple(expected.confidence_interval(0.9))
    assert (found.excluded_below, found.excluded_above) == pytest.approx(narrower)
    further = stats.t.ppf(0.975, 4) * ESTIMATES.std(ddof=1) * np.sqrt(6 / 5)
    ends = (found.predicted_low, found.predicted_high)
    assert ends == pytest.approx((0.16 - further, 0.16 + further))
    assert found.tau == pytest.approx(np.sqrt(paule_mandel(ESTIMATES, ERRORS)), rel=1e-4)
    weights = 1 / ERRORS**2
    q = (weights * (ESTIMATES - np.average(ESTIMATES, weights=weights)) ** 2).sum()
    assert pytest.approx((q - 4) / q, rel=1e-6) == found.I2
    assert (found.models, found.df, found.same_sign, found.note) == (5, 4, 4, "")


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_models_that_are_all_the_same_have_no_interval_of_rounding(value):
    found = pool(np.full(3, value), np.full(3, 0.1))
    assert found.estimate == pytest.approx(value)
    assert np.isnan([found.low, found.p, found.excluded_below, found.predicted_low]).all()
    assert (found.tau, found.I2) == (0.0, 0.0)
    assert re.search(r"interval: .*estimate", found.note)


def test_one_model_is_not_pooled():
    found = pool(np.array([0.2, 0.3]), np.array([0.1, np.nan]))
    assert np.isnan([found.estimate, found.p, found.tau]).all()
    assert re.fullmatch("undefined: .*1 of .*2 models", found.note)
