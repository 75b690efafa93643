"""The selection of prompts under a limit, spread evenly over the factors of the design."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from interp.prompts.prompt import Combination

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Design:
    """The prompts of a set as `spread` uses them: prompts in groups, and groups in units."""

    cells: Sequence[Combination]
    """The distinct combinations of the strata's values."""
    cell_of: Sequence[int]
    """The index in `cells` of each prompt's combination."""
    groups: Sequence[Sequence[int]]
    """The indices of each group's prompts."""
    units: Sequence[Sequence[int]]
    """The groups of each unit."""
    clusters: Sequence[Combination]
    """The cluster of each unit: the values that it may share with other units."""
    turns: int = 1
    """Number of units per combination of strata that take turns first, one group at a time."""

    def order(self, seed: int) -> Iterator[int]:
        """All groups, in the order of `spread`."""
        rng = random.Random(f"spread {seed}")
        within = random.Random(f"spread within units {seed}")
        cells = _by_cell(range(len(self.units)), self._cell_of_unit)
        drawn = evenly(cells, rng, self.clusters.__getitem__)
        first = list(islice(drawn, self.turns * len(cells)))
        for units in chain([first], ([unit] for unit in drawn)):
            unit_of = {group: unit for unit in units for group in self.units[unit]}
            yield from evenly(_by_cell(unit_of, self._cell_of_group), within, unit_of.__getitem__)

    def _cell_of_group(self, group: int) -> Combination:
        """The values of a group's members, which may differ in a stratum."""
        return _joined(frozenset(self.cells[self.cell_of[place]] for place in self.groups[group]))

    def _cell_of_unit(self, unit: int) -> Combination:
        return _joined(frozenset(map(self._cell_of_group, self.units[unit])))


@lru_cache(maxsize=4096)  # a large set has few combinations of cells
def _joined(cells: frozenset[Combination]) -> Combination:
    """A cell with all values that each stratum takes in the given cells."""
    return tuple(frozenset(values) for values in zip(*cells, strict=True))


def _by_cell(items: Iterable[T], cell_of: Callable[[T], Combination]) -> dict[Combination, list[T]]:
    cells: defaultdict[Combination, list[T]] = defaultdict(list)
    for item in items:
        cells[cell_of(item)].append(item)
    return cells


def evenly(
    cells: Mapping[Combination, Sequence[T]],
    rng: random.Random,
    cluster_of: Callable[[T], Hashable] = lambda item: item,
) -> Iterator[T]:
    """All items, in an order in which every prefix is spread evenly over the cells' values.

    In each round, every cell with items left contributes one, drawn at random from those whose
    cluster was drawn least often. Within a round, the cell whose values were drawn least often
    comes next.
    """
    # The items of each cell in random order, starting with the clusters drawn least often.
    queues = [[(0, rng.random(), *item) for item in enumerate(items)] for items in cells.values()]
    for queue in queues:
        heapify(queue)
    # The values of each cell as numbers, (cell, stratum), which are distinct across strata.
    numbers: dict[tuple[int, Hashable], int] = {}
    coded = [[numbers.setdefault(value, len(numbers)) for value in enumerate(c)] for c in cells]
    values = np.array(coded, dtype=np.int64, ndmin=2)
    taken = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    turns: Counter[Hashable] = Counter()
    waiting = list(range(len(queues)))
    while waiting:
        rows = np.array(sorted(waiting, key=lambda _: rng.random()))
        for place in _least_taken_first(values[rows], taken):
            yield _next(queues[rows[place]], turns, cluster_of)
        waiting = [row for row in waiting if queues[row]]


def _next(
    queue: list[tuple[int, float, int, T]],
    turns: Counter[Hashable],
    cluster_of: Callable[[T], Hashable],
) -> T:
    """Take the next item, and count the draw for its cluster."""
    while True:
        believed, key, place, item = heappop(queue)
        cluster = cluster_of(item)
        # Counts only increase, so an entry with an outdated count belongs further back.
        if believed == turns[cluster]:
            turns[cluster] += 1
            return item
        heappush(queue, (turns[cluster], key, place, item))


def _least_taken_first(values: NDArray[np.int64], taken: NDArray[np.int64]) -> Iterator[int]:
    """All rows of `values`, starting with the values taken least often; updates `taken`.

    Rows are compared by the sum of squared counts, so no value is taken much more often than
    others.
    """
    loads = (taken[values] ** 2).sum(axis=1)
    for _ in values:
        row = int(loads.argmin())
        yield row
        for column, value in enumerate(values[row]):
            loads[values[:, column] == value] += 2 * taken[value] + 1
            taken[value] += 1
        # Above any load, and small enough to be increased without overflow.
        loads[row] = np.iinfo(np.int64).max // 2
