"""Games of few players: what each one adds to a value, and what two add together.

A coalition of k players is a number below 2^k, whose bit i says whether player i is in it; a game
is the value of each coalition, in this order.
"""

from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""Of games, (..., 2^k): the last axis is that of the coalitions."""


def members(coalition: int, players: int) -> list[int]:
    """The players of a coalition."""
    return [player for player in range(players) if coalition >> player & 1]


def shapley_values(values: Values) -> Values:
    """The mean of what each player adds, over all orders of joining (Shapley 1953), (..., k).

    They add up to the value of all players minus that of none.
    """
    players = _players(values)
    found = np.zeros((*values.shape[:-1], players))
    for player in range(players):
        for others in _without(players, player):
            weight = factorial(_size(others)) * factorial(players - _size(others) - 1)
            added = values[..., others | 1 << player] - values[..., others]
            found[..., player] += weight / factorial(players) * added
    return found


def leave_one_out(values: Values) -> Values:
    """What each player adds to all the others, (..., k)."""
    everyone = values.shape[-1] - 1
    left = [everyone ^ 1 << player for player in range(_players(values))]
    return values[..., [everyone]] - values[..., left]


def interactions(values: Values) -> dict[tuple[int, int], Values]:
    """What two players add together beyond what each adds alone, for each pair of players.

    The mean over coalitions of the others, weighted as Shapley values are (Grabisch and Roubens
    1999); of two players v(12) - v(1) - v(2) + v(0).
    """
    players = _players(values)
    found: dict[tuple[int, int], Values] = {}
    for one, other in combinations(range(players), 2):
        total = np.zeros(values.shape[:-1])
        for rest in _without(players, one, other):
            weight = factorial(_size(rest)) * factorial(players - _size(rest) - 2)
            both = values[..., rest | 1 << one | 1 << other] + values[..., rest]
            apart = values[..., rest | 1 << one] + values[..., rest | 1 << other]
            total += weight / factorial(players - 1) * (both - apart)
        found[one, other] = total
    return found


def _players(values: Values) -> int:
    return int(values.shape[-1]).bit_length() - 1


def _size(coalition: int) -> int:
    return coalition.bit_count()


def _without(players: int, *absent: int) -> list[int]:
    """The coalitions that none of these players is in."""
    mask = sum(1 << player for player in absent)
    return [coalition for coalition in range(2**players) if not coalition & mask]
