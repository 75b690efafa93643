"""The selection of prompts under a limit, spread evenly over the factors of the design."""

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from interp.prompts.prompt import Combination

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Parts:
    """A partition of items into parts; items and parts are numbered from 0."""

    items: NDArray[np.int64]
    """The items, part by part, in order."""
    ends: NDArray[np.int64]
    """The end of each part in `items`."""

    @classmethod
    def of(cls, part_of: Sequence[int]) -> "Parts":
        """Create the parts from each item's part number; no part may be empty."""
        parts = np.array(part_of, dtype=np.int64)
        return cls(parts.argsort(kind="stable"), np.bincount(parts).cumsum())

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, part: int) -> list[int]:
        start = self.ends[part - 1] if part else 0
        items: list[int] = self.items[start : self.ends[part]].tolist()
        return items


@dataclass(frozen=True)
class Design:
    """The prompts of a set in the form that `spread` uses: prompts in groups, and groups in units.

    Numbers are stored in arrays, so hundreds of thousands of prompts fit in memory.
    """

    cells: Sequence[Combination]
    """The distinct combinations of the strata's values."""
    cell_of: Sequence[int]
    """The index in `cells` of each prompt's combination."""
    groups: Parts
    """The indices of each group's prompts."""
    units: Parts
    """The groups of each unit."""
    clusters: Sequence[Combination]
    """The cluster of each unit: the values that it may share with other units."""
    turns: int = 1
    """Number of units per combination of strata that take turns first, one group at a time."""

    def order(self, seed: int) -> Iterator[int]:
        """All groups, in the order of `spread`."""
        rng = random.Random(f"spread {seed}")
        within = random.Random(f"spread within units {seed}")
        drawn = evenly(self._units_by_cell, rng, self.clusters.__getitem__)
        first = list(islice(drawn, self.turns * len(self._units_by_cell)))
        for units in chain([first], ([unit] for unit in drawn)):
            unit_of = {group: unit for unit in units for group in self.units[unit]}
            yield from evenly(_by_cell(unit_of, self._cell_of_group), within, unit_of.__getitem__)

    @cached_property
    def _units_by_cell(self) -> dict[Combination, list[int]]:
        return _by_cell(range(len(self.units)), self._cell_of_unit)

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
    return dict(cells)


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
    queues = [_Queue(items, rng) for items in cells.values()]
    values = _numbered(list(cells))
    taken = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    turns: Counter[Hashable] = Counter()
    waiting = list(range(len(queues)))
    while waiting:
        keys_of_round = [rng.random() for _ in waiting]
        order = sorted(range(len(waiting)), key=keys_of_round.__getitem__)
        rows = np.array([waiting[place] for place in order])
        for place in _least_taken_first(values[rows], taken):
            yield queues[rows[place]].pop(turns, cluster_of)
        waiting = [row for row in waiting if queues[row].items]


class _Queue(Generic[T]):
    """The items of a cell in random order, starting with the clusters drawn least often."""

    def __init__(self, items: Sequence[T], rng: random.Random) -> None:
        self.items = [(0, rng.random(), place, item) for place, item in enumerate(items)]
        heapq.heapify(self.items)

    def pop(self, turns: Counter[Hashable], cluster_of: Callable[[T], Hashable]) -> T:
        """Take the next item, and count the draw for its cluster."""
        while True:
            believed, key, place, item = heapq.heappop(self.items)
            cluster = cluster_of(item)
            # Counts only increase, so an entry with an outdated count belongs further back.
            if believed == turns[cluster]:
                turns[cluster] += 1
                return item
            heapq.heappush(self.items, (turns[cluster], key, place, item))


def _numbered(cells: Sequence[Combination]) -> NDArray[np.int64]:
    """The values of each cell as numbers, (cell, stratum), which are distinct across strata."""
    numbers: dict[tuple[int, Hashable], int] = {}
    rows = [[numbers.setdefault(value, len(numbers)) for value in enumerate(c)] for c in cells]
    return np.array(rows, dtype=np.int64, ndmin=2)


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
