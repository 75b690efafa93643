"""Limits against their definition, and against how often new scores exceed them."""

import math

import numpy as np
import pytest

from interp.analysis.conformal import conformal_limit, covered_low, fewest


@pytest.mark.parametrize(
    ("level", "scores", "rank"),
    [(0.95, 19, 19), (0.95, 20, 20), (0.95, 39, 38), (0.9, 9, 9), (0.9, 29, 27), (0.5, 4, 3)],
)
def test_the_limit_is_an_order_statistic(level, scores, rank):
    values = np.random.default_rng(scores).permutation(scores) + 1.0
    assert conformal_limit(values, level) == rank


@pytest.mark.parametrize(
    ("level", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)]
)
def test_fewer_scores_than_needed_have_no_limit(level, needed):
    assert fewest(level) == needed
    assert math.isfinite(conformal_limit(np.ones(needed), level))
    assert conformal_limit(np.ones(needed - 1), level) == math.inf
    assert math.isnan(covered_low(needed - 1, 10, level))


@pytest.mark.parametrize(("level", "scores"), [(0.8, 5), (0.8, 14), (0.95, 20)])
def test_a_new_score_exceeds_the_limit_as_often_as_it_should(level, scores):
    """20,000 draws. One rank less would cover 0.13, 0.05 and 0.05 less, 15 standard errors."""
    drawn = np.random.default_rng(7).standard_cauchy((20_000, scores + 1))
    held = np.mean([row[-1] <= conformal_limit(row[:-1], level) for row in drawn])
    expected = math.ceil((scores + 1) * level) / (scores + 1)
    assert held == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 20_000))


def test_of_one_draw_at_least_so_many_are_covered():
    """The share of draws in which fewer are covered is at most 5%, and one unit more exceeds it."""
    scored, others, level = 24, 30, 0.9
    drawn = np.random.default_rng(3).standard_normal((20_000, scored + others))
    limits = np.array([conformal_limit(row[:scored], level) for row in drawn])
    covered = (drawn[:, scored:] <= limits[:, None]).mean(1)
    low = covered_low(scored, others, level)
    assert (covered < low - 1e-9).mean() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 20_000)
    assert (covered < low + 1 / others - 1e-9).mean() > 0.05
    assert math.isnan(covered_low(scored, 0, level))
