"""Metrics of orders: a game by hand, and every metric again by plain loops over permutations."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.judging import metrics

# v(0) = 1, each coalition of segments 1, 2, 3 as a sum of bits 1, 2, 4.
GAME = np.array([[1.0, 3.0, 2.0, 6.0, 1.0, 4.0, 2.0, 9.0]])


def test_a_game_by_hand():
    scores = np.array([[3.0, 2.0, 1.0]])
    # Kept one after another: 1, 3, 6, 9; removed one after another: 9, 2, 1, 1.
    assert metrics.necessity(scores, GAME) == pytest.approx((9 - 2) / 8)
    assert metrics.sufficiency(scores, GAME) == pytest.approx((3 - 1) / 8)
    assert metrics.circuit_performance(scores, GAME) == pytest.approx((0 + 2 * (2 + 5) + 8) / 8 / 6)
    assert metrics.circuit_distance(scores, GAME) == pytest.approx((8 + 2 * (6 + 3) + 0) / 8 / 6)
    assert metrics.recovered(scores, GAME) == pytest.approx((0 + 2 * (2 + 5) + 8) / 6)


def by_hand(scores, values):
    """Each metric by plain loops: the mean over the orders that the scores allow."""
    players = range(len(scores))
    whole = values[-1] - values[0]
    found, areas, allowed = [], [], []
    for order in permutations(players):
        kept, coalition = [values[0]], 0
        for player in order:
            coalition |= 1 << player
            kept.append(values[coalition])
        left = [values[-1] - values[(len(values) - 1) ^ c] for c in prefixes(order)]
        shares = [(v - values[0]) / whole for v in kept]
        steps = list(pairwise(shares))
        areas.append(np.mean(left))
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            allowed.append(len(areas) - 1)
            found.append(
                [
                    left[0] / whole,
                    shares[1],
                    np.mean([(a + b) / 2 for a, b in steps]),
                    np.mean([(abs(1 - a) + abs(1 - b)) / 2 for a, b in steps]),
                ]
            )
    spread = max(areas) - min(areas)
    normed = (np.mean([areas[i] for i in allowed]) - min(areas)) / spread
    if spread < metrics.LEAST_EFFECT:
        normed = np.nan
    return [*np.mean(found, 0), normed]


def prefixes(order):
    coalition = 0
    for player in order:
        coalition |= 1 << player
        yield coalition


METRICS = (
    metrics.necessity,
    metrics.sufficiency,
    metrics.circuit_performance,
    metrics.circuit_distance,
    metrics.normalized_aopc,
)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), segments=st.integers(2, 4), tied=st.booleans())
def test_metrics_of_orders_are_those_of_plain_loops(seed, segments, tied):
    chance = np.random.default_rng(seed)
    scores = chance.normal(size=(2, 3, segments))
    if tied:
        scores = chance.integers(0, 2, scores.shape).astype(float)
    values = chance.normal(size=(3, 2**segments)) * 3
    values[:, -1] = values[:, 0] + 0.2 + np.abs(values[:, -1])
    for method, prompt in np.ndindex(2, 3):
        expected = by_hand(scores[method, prompt], values[prompt])
        found = [metric(scores, values)[method, prompt] for metric in METRICS]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_random_order_is_worth_what_equal_scores_are(seed):
    chance = np.random.default_rng(seed)
    values = chance.normal(size=(1, 8)) * 3
    values[:, -1] = values[:, 0] + 2
    drawn = np.array([[p] for p in permutations([1.0, 2.0, 3.0])])
    for metric in (*METRICS, metrics.recovered):
        equal = metric(np.ones((1, 3)), values)
        np.testing.assert_allclose(metric(drawn, values).mean(0), equal, atol=1e-9)
    assert metrics.morf_minus_lerf(np.ones((1, 3)), values) == pytest.approx(0)


def test_most_and_least_relevant_first_are_mirrors():
    scores = np.array([[[3.0, 2.0, 1.0]], [[1.0, 2.0, 3.0]]])
    one, other = metrics.morf_minus_lerf(scores, GAME)
    assert one == pytest.approx(-other)
    assert one == pytest.approx(metrics.normalized_aopc(scores[0], GAME)[0] - (17 - 17) / (23 - 17))


def test_what_cannot_be_divided_is_undefined():
    flat = GAME.copy()
    flat[:, -1] = 1.05
    scores = np.array([[3.0, 2.0, 1.0]])
    for metric in METRICS[:4]:
        assert np.isnan(metric(scores, flat)).all()
    assert np.isfinite(metrics.recovered(scores, flat)).all()
    nothing = np.ones((1, 8))
    assert np.isnan(metrics.normalized_aopc(scores, nothing)).all()
