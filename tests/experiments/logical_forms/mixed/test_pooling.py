"""Random-effects meta-analysis over models: against a worked example, and on simulated data."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from interp_experiments.logical_forms.mixed.means import pool, pooled_table

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


def test_models_that_agree_have_no_spread():
    found = pool(np.array([0.2, 0.21, 0.19]), np.full(3, 0.1))
    assert (found.tau, found.I2) == (0.0, 0.0)
    assert found.low < 0.2 < found.high


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


def test_two_models_predict_a_third_hardly():
    found = pool(np.array([0.2, 0.3]), np.array([0.1, 0.1]))
    assert found.low < found.estimate < found.high
    assert found.predicted_high - found.predicted_low > 2  # t with one degree of freedom


@pytest.mark.quick(1)
@pytest.mark.parametrize("models", [3, 4, 10])
@pytest.mark.parametrize("tau", [0.0, 0.05])
def test_intervals_hold_the_mean_and_the_next_model_where_one_error_is_small(models, tau):
    """2,000 simulations: 0.95 has a standard error of 0.005.

    Weights by estimated variances follow the precise model where the spread happens to look small:
    with a true spread like the errors, Hartung and Knapp's interval held the mean in 0.81 to 0.85.
    """
    rng = np.random.default_rng(models)
    errors = np.full(models, 0.06)
    errors[0] = 0.01
    true = rng.normal(0, tau, (2_000, models + 1))
    found = [pool(one, errors) for one in true[:, :-1] + errors * rng.normal(size=(2_000, models))]
    low, high, p = np.array([(one.low, one.high, one.p) for one in found]).T
    held = (low <= 0) & (high >= 0)
    assert held.mean() >= 0.935
    assert ((p < 0.05) == ~held).all()
    below, above = np.array([(one.predicted_low, one.predicted_high) for one in found]).T
    measured = true[:, -1] + rng.choice(errors, 2_000) * rng.normal(size=2_000)
    for next_model in (true[:, -1], measured):
        assert ((below <= next_model) & (next_model <= above)).mean() >= 0.935


def test_one_row_for_each_contrast():
    table = pd.DataFrame({"first": ["a", "b"] * 5, "difference": np.repeat(ESTIMATES, 2)})
    table = table.assign(standard_error=np.repeat(ERRORS, 2))
    found = pooled_table(table, estimate="difference", error="standard_error", by=["first"])
    assert found["first"].tolist() == ["a", "b"]
    assert found["estimate"].nunique() == 1
    assert found["models"].tolist() == [5, 5]
