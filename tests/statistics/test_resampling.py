import numpy as np
import pytest

from interp.statistics.resampling import (
    bootstrap_sums,
    least_sign_p,
    random_sign_sums,
    share_as_far,
)
from interp.statistics.summaries import UPPER, Z, percentile_interval


def test_the_draws_are_those_of_one_multinomial_sample():
    values = np.random.default_rng(1).normal(size=(7, 2))
    draws = np.random.default_rng(0).multinomial(7, [1 / 7] * 7, size=450)
    sums = bootstrap_sums(values, resamples=450)
    assert sums == pytest.approx(draws @ values, abs=1e-12)


def test_random_signs_are_fair_and_independent():
    signs = np.array([random_sign_sums(row, resamples=2000) for row in np.eye(4)])
    assert set(signs.ravel()) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=1)).max() < 0.1
    assert np.abs(np.corrcoef(signs) - np.eye(4)).max() < 0.1


def test_the_level_is_that_of_the_documents():
    assert UPPER == 0.975
    assert pytest.approx(1.959964, abs=1e-6) == Z
    assert percentile_interval(np.arange(1001.0)) == pytest.approx((25.0, 975.0))
    assert np.isnan(percentile_interval(np.empty(0))).all()


def test_a_test_of_small_numbers_is_that_of_large_ones():
    """Probabilities of whole names may be 1e-12: the unit of a statistic has no part in its p."""
    values = np.random.default_rng(2).normal(0.6, 1, size=30)
    found = [
        share_as_far(random_sign_sums(values * unit, resamples=999), float(values.sum() * unit))
        for unit in (1.0, 1e-12, 1e12)
    ]
    assert found[0] < 0.05
    assert found[1:] == [found[0]] * 2


@pytest.mark.parametrize("rows", [10, 11, 12])
def test_the_least_p_of_random_signs_is_that_of_the_two_equal_assignments(rows):
    expected, draws = 2 ** (1 - rows), 200_000
    error = np.sqrt(expected / draws)
    assert least_sign_p(rows, draws) == pytest.approx(expected, abs=4 * error)
    assert least_sign_p(40, 999) == 1 / 1000
