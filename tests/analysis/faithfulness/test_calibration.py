"""Calibration: by hand, and the isotonic fit against scipy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from interp.analysis.faithfulness.calibration import (
    MonotoneMap,
    area_under_curve,
    calibration_error,
    noise_floor,
)


def test_the_calibration_error_by_hand():
    probabilities = np.array([0.05, 0.15, 0.18, 0.95, 1.0])
    decides = np.array([False, True, False, True, True])
    # Bins: 0.05 - 0; (0.33 - 1) of two; (1.95 - 2) of two.
    assert calibration_error(probabilities, decides) == pytest.approx((0.05 + 0.67 + 0.05) / 5)
    assert calibration_error(np.array([0.0, 1.0]), np.array([False, True])) == 0
    assert np.isnan(calibration_error(np.array([]), np.array([], dtype=bool)))


def test_the_area_under_the_curve_by_hand():
    shares = np.array([0.2, 0.6, 0.6, 0.9])
    decides = np.array([False, False, True, True])
    # Of four pairs three are right and one ties.
    assert area_under_curve(shares, decides) == pytest.approx(3.5 / 4)
    assert np.isnan(area_under_curve(shares, np.ones(4, dtype=bool)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_map_is_the_isotonic_regression_of_both_segments(seed):
    chance = np.random.default_rng(seed)
    shares = np.round(chance.random(40) * 32) / 32
    decides = chance.random(40) < shares
    found = MonotoneMap.fitted(shares, decides)
    assert list(found.probabilities) == sorted(found.probabilities)
    x = np.concatenate([shares, 1 - shares])
    y = np.concatenate([decides, ~decides]).astype(float)
    places, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, y) / counts
    expected = isotonic_regression(means, weights=counts.astype(float)).x
    np.testing.assert_allclose(found(places), expected, atol=1e-6)
    # No place is preferred: the two segments of a prompt have probabilities of sum 1.
    grid = np.linspace(0, 1, 33)
    np.testing.assert_allclose(found(grid) + found(1 - grid), 1, atol=1e-5)


def test_a_map_is_constant_beyond_what_it_was_fitted_to_and_undefined_for_nothing():
    found = MonotoneMap((0.25, 0.75), (0.1, 0.9))
    np.testing.assert_allclose(found(np.array([0.0, 0.5, 1.0])), [0.1, 0.5, 0.9])
    assert np.isnan(found(np.array([np.nan]))).all()


def test_the_noise_floor_by_hand():
    """One prompt of probability p: its error is 1 - p with chance p, else p."""
    assert noise_floor([np.array([0.3])]).mean == pytest.approx(2 * 0.3 * 0.7, abs=0.01)
    assert noise_floor([np.array([0.3])]).high == pytest.approx(0.7)
    # Two in a bin: the sum is 0, 1 or 2 with chances 1/4, 1/2, 1/4, against an expected 1.
    assert noise_floor([np.array([0.5, 0.5])]).mean == pytest.approx(0.25, abs=0.01)
    certain = noise_floor([np.array([0.0, 1.0])])
    assert certain == (0, 0)
    assert np.isnan(noise_floor([np.array([])])).all()


def test_right_probabilities_exceed_the_floor_in_one_of_twenty_studies_and_wrong_ones_in_most():
    chance = np.random.default_rng(0)
    above, wrong, errors = 0, 0, []
    for _ in range(300):
        right = chance.random(23)
        decides = chance.random(23) < right
        floor = noise_floor([right])
        errors.append(calibration_error(right, decides) - floor.mean)
        above += errors[-1] + floor.mean > floor.high
        wrong += calibration_error(1 - right, decides) > noise_floor([1 - right]).high
    # 300 studies of a rate of 0.05: at most 29 with a chance of 0.9997.
    assert above <= 29
    assert wrong > 270
    assert np.mean(errors) == pytest.approx(0, abs=0.01)
