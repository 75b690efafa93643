"""Random draws from `random.Random.random`, the only method whose sequence Python guarantees."""

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def below(rng: random.Random, number: int) -> int:
    """A whole number from 0 to `number` - 1."""
    return int(rng.random() * number)


def pick(rng: random.Random, items: Sequence[T]) -> T:
    """One of the items; all are equally likely."""
    return items[below(rng, len(items))]


def happens(rng: random.Random, probability: float) -> bool:
    """Whether an event with this probability occurs."""
    return rng.random() < probability


def some(rng: random.Random, items: Sequence[T], number: int) -> list[T]:
    """`number` different items in random order; all items if there are fewer."""
    left = list(items)
    return [left.pop(below(rng, len(left))) for _ in range(min(number, len(left)))]


def shuffled(rng: random.Random, items: Sequence[T]) -> Iterator[T]:
    """The items in random order, drawn lazily (Fisher-Yates)."""
    moved: dict[int, T] = {}
    for last in range(len(items) - 1, -1, -1):
        place = below(rng, last + 1)
        yield moved.get(place, items[place])
        moved[place] = moved.get(last, items[last])
