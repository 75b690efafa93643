"""Games by hand, and against all orders of joining."""

from itertools import combinations, permutations

import numpy as np
import pytest

from interp.attribution.games import interactions, leave_one_out, shapley_values


def random_games(players, games=5):
    return np.random.default_rng(players).normal(size=(games, 2**players))


def test_a_game_by_hand():
    """Two need each other for 6, the first alone gets 2, and the second alone nothing."""
    values = np.array([1.0, 3.0, 1.0, 7.0])
    # Joining first the first player adds 2, joining second 6; the second player adds 0 or 4.
    assert shapley_values(values).tolist() == [4.0, 2.0]
    assert leave_one_out(values).tolist() == [6.0, 4.0]
    assert {pair: float(v) for pair, v in interactions(values).items()} == {(0, 1): 4.0}


def test_a_glove_game():
    """One left glove, two right ones; a pair is worth 1: 2/3 for the left, 1/6 for each right."""
    values = np.array([float(c & 1 and c & 6 != 0) for c in range(8)])
    np.testing.assert_allclose(shapley_values(values), [2 / 3, 1 / 6, 1 / 6])
    assert leave_one_out(values).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("players", [1, 2, 3, 4])
def test_shapley_values_are_means_over_all_orders(players):
    games = random_games(players)
    expected = np.zeros((len(games), players))
    orders = list(permutations(range(players)))
    for order in orders:
        coalition = 0
        for player in order:
            joined = coalition | 1 << player
            expected[:, player] += (games[:, joined] - games[:, coalition]) / len(orders)
            coalition = joined
    np.testing.assert_allclose(shapley_values(games), expected, atol=1e-12)
    np.testing.assert_allclose(
        shapley_values(games).sum(-1), games[:, -1] - games[:, 0], atol=1e-12
    )


@pytest.mark.parametrize("players", [1, 2, 3, 4])
def test_interactions_share_out_the_dividends(players):
    """By another formula: the dividend of each coalition, over its number of members less one."""
    games = random_games(players)
    dividends = np.zeros_like(games)
    for coalition in range(2**players):
        within = [c for c in range(2**players) if c & coalition == c]
        signs = [(-1) ** ((coalition ^ c).bit_count()) for c in within]
        dividends[:, coalition] = games[:, within] @ np.array(signs)
    found = interactions(games)
    assert list(found) == list(combinations(range(players), 2))
    for (one, other), values in found.items():
        both = 1 << one | 1 << other
        expected = sum(
            dividends[:, c] / (c.bit_count() - 1) for c in range(2**players) if c & both == both
        )
        np.testing.assert_allclose(values, expected, atol=1e-12)
