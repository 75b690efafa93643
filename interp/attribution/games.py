"""Games between a prompt's segments: each segment is either kept or replaced by a donor's.

A coalition of k players is a number below 2^k, whose bit i is set if the coalition includes player
i. A game is the array of all coalitions' values, in this order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from interp.errors import UserError
from interp.prompts.mixing import mixed
from interp.prompts.prompt import Donor, Prompt

Values = NDArray[np.float64]
"""Values of games, (..., 2^k); the last axis runs over coalitions."""


def members(coalition: int, players: int) -> list[int]:
    """The players of a coalition."""
    return [player for player in range(players) if coalition >> player & 1]


def shapley_values(values: Values) -> Values:
    """Each player's contribution, averaged over all orders of joining (Shapley 1953): (..., k).

    The contributions add up to the value of the full coalition minus that of the empty one.
    """
    players = _players(values)
    contributions = np.zeros((*values.shape[:-1], players))
    for player in range(players):
        for others in _without(players, player):
            size = others.bit_count()
            weight = factorial(size) * factorial(players - size - 1)
            added = values[..., others | 1 << player] - values[..., others]
            contributions[..., player] += weight / factorial(players) * added
    return contributions


def leave_one_out(values: Values) -> Values:
    """The value that each player adds to the coalition of all others, (..., k)."""
    everyone = values.shape[-1] - 1
    left = [everyone ^ 1 << player for player in range(_players(values))]
    return values[..., [everyone]] - values[..., left]


def interactions(values: Values) -> dict[tuple[int, int], Values]:
    """The interaction of each pair of players: their joint minus their separate contributions.

    Each interaction is a mean over coalitions of the other players, weighted like Shapley values
    (Grabisch and Roubens 1999); in a game of two players it is v(12) - v(1) - v(2) + v(0).
    """
    players = _players(values)
    by_pair: dict[tuple[int, int], Values] = {}
    for one, other in combinations(range(players), 2):
        total = np.zeros(values.shape[:-1])
        for rest in _without(players, one, other):
            size = rest.bit_count()
            weight = factorial(size) * factorial(players - size - 2)
            both = values[..., rest | 1 << one | 1 << other] + values[..., rest]
            apart = values[..., rest | 1 << one] + values[..., rest | 1 << other]
            total += weight / factorial(players - 1) * (both - apart)
        by_pair[one, other] = total
    return by_pair


def _players(values: Values) -> int:
    return int(values.shape[-1]).bit_length() - 1


def _without(players: int, *absent: int) -> list[int]:
    """The coalitions without any of these players."""
    mask = sum(1 << player for player in absent)
    return [coalition for coalition in range(2**players) if not coalition & mask]


MOST_SEGMENTS = 6
"""Largest number k of segments for which all coalitions (2^k prompts per donor) are run."""


def check_segments(prompt: Prompt, segments: Sequence[str]) -> None:
    """Reject segments if there are too many to run all their coalitions."""
    if len(segments) > MOST_SEGMENTS:
        raise UserError(
            f"the donors of prompt {prompt.id} replace {len(segments)} segments; expected at "
            f"most {MOST_SEGMENTS}, since every combination is read. Choose segments with "
            "interp effects --segments, or omit methods that replace segments"
        )


@dataclass(frozen=True)
class Coalitions:
    """A prompt mixed with each donor, for each coalition of kept segments."""

    prompt: Prompt
    donors: tuple[Donor, ...]
    """The donors, which must all replace the same segments."""

    def __post_init__(self) -> None:
        if not self.donors:
            raise UserError(
                f"prompt {self.prompt.id} has no donor from another instance of its template; "
                "expected at least one: try a larger set of prompts"
            )
        check_segments(self.prompt, self.segments)

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments that donors replace; segment i is player i of the game."""
        return tuple(self.donors[0].segments)

    @cached_property
    def prompts(self) -> Sequence[Sequence[Prompt]]:
        """The mixed prompts by donor and coalition; many of them have the same text."""
        players = len(self.segments)
        kept = [[self.segments[i] for i in members(group, players)] for group in range(2**players)]
        return [[mixed(self.prompt, donor, kept=names) for names in kept] for donor in self.donors]
