"""Random-effects meta-analysis over models: against a worked example, and on simulated data."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from interp.analysis.mixed.pooling import pool, pooled_table

ESTIMATES = np.array([0.10, 0.22, 0.35, 0.15, -0.02])
ERRORS = np.array([0.03, 0.05, 0.04, 0.03, 0.06])


def by_hand(estimates, errors):
    """Paule and Mandel's tau, the weighted mean, and Hartung and Knapp's standard error."""

    def excess(tau2):
        weights = 1 / (errors**2 + tau2)
        mean = (weights * estimates).sum() / weights.sum()
        return (weights * (estimates - mean) ** 2).sum() - (len(estimates) - 1)

    tau2 = optimize.brentq(excess, 0, 1) if excess(0) > 0 else 0.0
    weights = 1 / (errors**2 + tau2)
    mean = (weights * estimates).sum() / weights.sum()
    spread = (weights * (estimates - mean) ** 2).sum() / (len(estimates) - 1)
    return tau2, mean, np.sqrt(spread / weights.sum())


def test_five_models_by_hand():
    tau2, mean, error = by_hand(ESTIMATES, ERRORS)
    found = pool(ESTIMATES, ERRORS)
    assert found.tau == pytest.approx(np.sqrt(tau2), rel=1e-4)
    assert found.estimate == pytest.approx(mean, rel=1e-4)
    half = stats.t.ppf(0.975, 4) * error
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half), rel=1e-4)
    assert found.p == pytest.approx(2 * stats.t.sf(mean / error, 4), rel=1e-4)
    further = stats.t.ppf(0.975, 3) * np.sqrt(tau2 + error**2)
    assert found.predicted_high == pytest.approx(mean + further, rel=1e-4)
    weights = 1 / ERRORS**2
    q = (weights * (ESTIMATES - np.average(ESTIMATES, weights=weights)) ** 2).sum()
    assert pytest.approx((q - 4) / q, rel=1e-6) == found.I2
    assert (found.models, found.df, found.same_sign, found.note) == (5, 4, 4, "")


def test_models_that_agree_have_no_spread():
    found = pool(np.array([0.2, 0.21, 0.19]), np.full(3, 0.1))
    assert (found.tau, found.I2) == (0.0, 0.0)
    assert found.low < 0.2 < found.high


def test_equal_errors_give_the_t_test_over_models():
    found = pool(ESTIMATES, np.full(5, 0.04))
    expected = stats.ttest_1samp(ESTIMATES, 0)
    assert found.estimate == pytest.approx(ESTIMATES.mean())
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6)


def test_one_model_is_not_pooled():
    found = pool(np.array([0.2, 0.3]), np.array([0.1, np.nan]))
    assert np.isnan([found.estimate, found.p, found.tau]).all()
    assert found.note == "undefined: 1 of at least 2 models"


def test_two_models_predict_no_third():
    found = pool(np.array([0.2, 0.3]), np.array([0.1, 0.1]))
    assert found.low < found.estimate < found.high
    assert np.isnan([found.predicted_low, found.predicted_high]).all()


@pytest.mark.parametrize(("models", "sd"), [(3, 0.05), (5, 0.05), (10, 0.0), (10, 0.05)])
def test_what_is_true_of_no_model_in_general_is_found_in_one_case_of_twenty(models, sd):
    """400 simulations: 0.05 has a standard error of 0.011."""
    rng = np.random.default_rng(models)
    errors = rng.uniform(0.01, 0.04, (400, models))
    estimates = rng.normal(0, np.sqrt(errors**2 + sd**2))
    found = [pool(*one).p for one in zip(estimates, errors, strict=True)]
    assert 0.02 <= np.mean(np.array(found) < 0.05) <= 0.085


def test_one_row_for_each_contrast():
    table = pd.DataFrame(
        {
            "first": ["a", "b"] * 5,
            "difference": np.repeat(ESTIMATES, 2),
            "standard_error": np.repeat(ERRORS, 2),
        }
    )
    found = pooled_table(table, estimate="difference", error="standard_error", by=["first"])
    assert found["first"].tolist() == ["a", "b"]
    assert found["estimate"].nunique() == 1
    assert found["models"].tolist() == [5, 5]
