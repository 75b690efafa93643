"""Draws that are the same in every version of Python: all come from `random.Random.random`."""

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def pick(items: Sequence[T], rng: random.Random) -> T:
    """One of the items, drawn evenly."""
    return items[int(rng.random() * len(items))]


def shuffled(items: Sequence[T], rng: random.Random) -> Iterator[T]:
    """The items in random order, each drawn when it is asked for (Fisher and Yates)."""
    moved: dict[int, T] = {}
    for last in range(len(items) - 1, -1, -1):
        place = int(rng.random() * (last + 1))
        yield moved.get(place, items[place])
        moved[place] = moved.get(last, items[last])
