"""Draws from `random.Random.random` alone, the one sequence that Python guarantees."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def below(rng: random.Random, number: int) -> int:
    """A whole number from 0 on and below `number`."""
    return int(rng.random() * number)


def pick(rng: random.Random, items: Sequence[T]) -> T:
    """One of the items."""
    return items[below(rng, len(items))]


def happens(rng: random.Random, probability: float) -> bool:
    """Whether something of this probability happens."""
    return rng.random() < probability


def some(rng: random.Random, items: Sequence[T], number: int) -> list[T]:
    """So many different items, in a drawn order; all where there are fewer."""
    left = list(items)
    return [left.pop(below(rng, len(left))) for _ in range(min(number, len(left)))]
