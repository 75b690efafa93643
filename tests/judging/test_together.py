"""Comparisons of all methods with each other, against single bounds and cases by hand."""

import numpy as np
import pytest
from scipy.stats import rankdata

from interp.judging.together import ADDED, DRAWS, _ranks, compared, optimism


def differences_of(values):
    """Sums and masses of differences between methods that have one prompt in each cluster."""
    values = np.asarray(values, dtype=float)
    differences = values[None] - values[:, None]
    return differences, np.ones_like(differences)


def test_with_two_methods_the_p_value_is_that_of_one_bound_on_either_side():
    rng = np.random.default_rng(3)
    values = (rng.random((2, 20)) < np.array([[0.9], [0.45]])).astype(float)
    p, (low, high) = compared(*differences_of(values), best=0, most=1.0)
    chance = np.random.default_rng(0)
    weights, extra = chance.standard_exponential((DRAWS, 20)), chance.gamma(ADDED, size=DRAWS)
    lead = values[0] - values[1]
    lower = (weights @ lead - extra) / (weights.sum(1) + extra)
    alone = float((lower <= 0).mean())
    assert 0 < alone < 0.01
    # Two bounds, one for each direction: at most twice the level of one.
    assert alone <= p[1] <= 2.2 * alone + 2 / DRAWS
    assert p[0] > 0.5
    assert low[1] == pytest.approx(np.quantile(lower, 0.025), abs=0.01)
    assert low[1] < lead.mean() < high[1]


def test_equal_methods_are_not_compared_and_never_worse():
    values = np.tile([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0], (3, 1))
    p, (low, high) = compared(*differences_of(values), best=1, most=1.0)
    assert (p > 0.9).all()
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_adding_methods_makes_each_claim_harder():
    rng = np.random.default_rng(5)
    good, bad = np.ones(16), (rng.random(16) < 0.5).astype(float)
    others = (rng.random((8, 16)) < 0.8).astype(float)
    few, _ = compared(*differences_of([good, bad]), best=0, most=1.0)
    many, _ = compared(*differences_of([good, bad, *others]), best=0, most=1.0)
    assert few[1] <= many[1]
    assert few[1] < 0.05


def test_prompts_without_a_value_do_not_count():
    values = np.array([np.ones(30), np.r_[np.zeros(15), np.full(15, np.nan)]])
    ahead = values[None] - values[:, None]
    masses = (~np.isnan(ahead)).astype(float)
    p, _ = compared(np.nan_to_num(ahead), masses, best=0, most=1.0)
    alone, _ = compared(*differences_of(values[:, :15]), best=0, most=1.0)
    assert p[1] == pytest.approx(alone[1], abs=0.002)


def test_ranks_are_those_of_scipy_also_among_ties_and_rounding():
    draws = np.random.default_rng(0).normal(size=(500, 4))
    draws[:, 1] = np.round(draws[:, 1], 1)
    draws[:, 2] = 0.3
    draws[::2, 2] = 0.1 + 0.2
    expected = rankdata(np.round(draws, 12), method="max", axis=0) - 1
    np.testing.assert_array_equal(_ranks(draws), expected)
    assert (_ranks(draws)[:, 2] == 499).all()


def test_the_bias_of_selection_is_that_of_resampled_clusters():
    sums = np.random.default_rng(1).normal(size=(3, 12))
    sums[0] += 0.3
    drawn = np.random.default_rng(2).integers(0, 12, (4000, 12))
    means = sums[:, drawn].mean(-1)
    own = sums.mean(1)[means.argmax(0)]
    expected = (means.max(0) - own).mean()
    assert optimism(sums, np.ones_like(sums)) == pytest.approx(expected, abs=0.02)
    assert expected > 0.02 + (means.max(0) - sums.mean(1).max()).mean()
