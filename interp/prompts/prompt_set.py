"""A set of prompts: built when read, hashed, checked, and thinned evenly."""

import hashlib
import heapq
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from interp.errors import UserError, shortened
from interp.prompts.answers import FreeText
from interp.prompts.donors import DonorSource
from interp.prompts.prompt import Prompt

T = TypeVar("T", bound=Hashable)

Cell = tuple[Hashable, ...]
"""A combination of values, one for each stratum."""

_COLUMNS = frozenset({"prompt_id", "pair_id", "side", "text", "gold", "weight"})
"""Columns of the prompts table that every system has."""


class Decisive(NamedTuple):
    """Where a prompt says which of its segments decide the answer."""

    factor: str
    """The factor that names them, separated by spaces, such as "golden_rule"."""
    among: tuple[str, ...]
    """What the names of the segments begin with that might seem to decide, those among them."""


@dataclass(frozen=True)
class PromptSet(Sequence[Prompt]):
    """The prompts of a system, in a fixed order.

    A prompt is built when it is read, so a large set costs little memory.
    """

    system: str
    """Name of the system that the prompts come from."""
    sides: tuple[str, ...]
    """What the members of a group are called: the two sides of a pair, such as ("rulebreaker",
    "non_rulebreaker"), or a base and its variants; one name where prompts have no group."""
    strata: tuple[str, ...]
    """Factors over which `spread` takes groups evenly."""
    build: Callable[[int], Prompt]
    """Builds the prompt of a number in `numbers`."""
    numbers: Sequence[int]
    """The prompts of this set, in order."""
    seed: int = 0
    """What the set was generated with."""
    description: dict[str, str] = field(default_factory=dict)
    """Where the data came from, for the run's record."""
    ratio: tuple[str, str] | None = None
    """Two segments whose scores are compared, the first over the second, such as ("premise2",
    "premise1"); None where no two are."""
    decisive: Decisive | None = None
    """Where the data say which segments decide an answer; None where they do not."""
    whole_groups: bool = True
    """Whether every group has a member of every side, which `check` then asks for."""
    unit: tuple[str, ...] = ()
    """Factors that name a unit of the design, such as ("interpretation",): groups that share their
    values are crossed with everything else, and `spread` takes them together. Each group is a unit
    where there are none."""
    clusters: tuple[str, ...] = ()
    """Factors that name what units have in common, such as their entities: `spread` comes back to
    one only when all others of a stratum have had as many turns."""
    weights: Mapping[Cell, float] = field(default_factory=dict)
    """By combination of strata: prompts of the whole set for each prompt of this one, where
    `spread` took some of them; 1 for combinations that are not listed."""
    donors: DonorSource | None = None
    """Where other texts for the segments of its prompts come from, if its system has any."""

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Prompt: ...

    @overload
    def __getitem__(self, index: slice) -> "PromptSet": ...

    def __getitem__(self, index: int | slice) -> "Prompt | PromptSet":
        if isinstance(index, slice):
            return replace(self, numbers=self.numbers[index])
        return self.build(self.numbers[index])

    def __iter__(self) -> Iterator[Prompt]:
        return map(self.build, self.numbers)

    @classmethod
    def of(cls, prompts: Sequence[Prompt]) -> "PromptSet":
        """Prompts that are at hand as a set; one that is a set already stays as it is."""
        if isinstance(prompts, PromptSet):
            return prompts
        held = list(prompts)
        sides = tuple(dict.fromkeys(prompt.side for prompt in held))
        return cls("own prompts", sides, (), held.__getitem__, range(len(held)))

    def content_hash(self) -> str:
        """A hash over everything in the prompts, in order: the data that results depend on."""
        return self._content[0]

    def parser_modules(self) -> frozenset[str]:
        """The modules of the functions that judge generated texts: code that results depend on."""
        return self._content[1]

    def columns(self) -> Mapping[str, object]:
        """The columns of the prompts table, each with a value; some prompts may lack it."""
        return self._content[2]

    @cached_property
    def _content(self) -> tuple[str, frozenset[str], Mapping[str, object]]:
        digest, modules = hashlib.sha256(), set[str]()
        layouts: set[tuple[str, ...]] = set()
        columns: dict[str, object] = {}
        for prompt in self:
            digest.update(prompt_record(prompt).encode())
            if isinstance(prompt.answer, FreeText):
                modules.add(prompt.answer.parse.__module__)
            layout = (*prompt.factors, *prompt.segments)
            if layout not in layouts:
                layouts.add(layout)
                columns = {**columns, **_row(prompt, 1.0), **columns}
        return digest.hexdigest(), frozenset(modules), columns

    def check(self) -> None:
        """Check that ids are unique, columns too, and that every group has each side once.

        Where groups are not whole, each has some of the sides, at most once.

        Raises:
            UserError: a duplicate id, a factor with the name of another column, or a group that
                lacks or repeats a side or has an unknown one.
        """
        ids: set[str] = set()
        sides: defaultdict[str, list[str]] = defaultdict(list)
        for prompt in self:
            if taken := _COLUMNS & prompt.factors.keys():
                raise UserError(
                    f"prompt {shortened(prompt.id, 60)!r} has a factor {min(taken)!r}, which is "
                    "another column of the prompts table; give the factor another name"
                )
            if prompt.id in ids:
                raise UserError(f"prompt id {prompt.id!r} occurs twice; ids must be unique")
            ids.add(prompt.id)
            sides[prompt.pair_id].append(prompt.side)
        for pair_id, found in sides.items():
            missing = set(self.sides) - set(found) if self.whole_groups else set()
            if missing or len(set(found)) < len(found) or not set(found) <= set(self.sides):
                raise UserError(
                    f"pair {pair_id!r} has the sides {', '.join(found)}; expected "
                    f"{'' if self.whole_groups else 'at most '}one {' and one '.join(self.sides)}"
                )

    def spread(self, pairs: int, seed: int = 0) -> "PromptSet":
        """A subset of whole pairs or groups, evenly over the strata, in the order they are drawn.

        Units of the design are drawn by `seed`, such that every value of every stratum occurs as
        often as any other, within what the set holds. All groups of a unit are taken before the
        next one begins, so that at most the last is incomplete. Only the first units, one for each
        combination of strata, take turns: a small subset is spread over the strata, too.

        A larger subset begins with a smaller one, so that what was measured of that one need not
        be measured again.

        Raises:
            UserError: fewer than one pair asked for.
        """
        if not isinstance(pairs, int) or pairs < 1:
            raise UserError(f"the limit is {pairs!r}; expected a number of at least one pair")
        chosen = [
            number
            for group in islice(self._design.order(seed), pairs)
            for number in self._design.members[group]
        ]
        return replace(
            self,
            numbers=chosen,
            description={**self.description, "pairs": str(pairs), "spread_seed": str(seed)},
            weights=self._weights_of(chosen),
        )

    def weight(self, prompt: Prompt) -> float:
        """How many prompts of the whole set a prompt of this one represents.

        Those of its stratum over the ones that were drawn.
        """
        return self.weights.get(self._cell(prompt), 1.0)

    def _weights_of(self, numbers: Sequence[int]) -> dict[Cell, float]:
        cells = self._design.cells
        held, drawn = Counter(cells.values()), Counter(cells[number] for number in numbers)
        return {
            cell: self.weights.get(cell, 1.0) * held[cell] / count for cell, count in drawn.items()
        }

    def _cell(self, prompt: Prompt) -> Cell:
        return tuple(prompt.factors[name] for name in self.strata)

    @cached_property
    def _design(self) -> "Design":
        """What `spread` has to know of the prompts."""
        design = Design({}, {}, {}, {})
        for number, prompt in zip(self.numbers, self, strict=True):
            design.cells[number] = self._cell(prompt)
            if prompt.pair_id not in design.members:
                unit = tuple(prompt.factors[name] for name in self.unit) or (prompt.pair_id,)
                design.units.setdefault(unit, []).append(prompt.pair_id)
                if self.clusters:
                    design.clusters[unit] = tuple(prompt.factors[name] for name in self.clusters)
            design.members.setdefault(prompt.pair_id, []).append(number)
        return design

    @property
    def numbers_by_group(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the prompts of each pair or group, by its id."""
        return self._design.members

    def to_frame(self) -> pd.DataFrame:
        """The prompts table: see `interp.tables`."""
        return pd.DataFrame(list(self.rows()))

    def rows(self) -> Iterator[dict[str, object]]:
        """The prompts as rows of the prompts table, one after another."""
        return (_row(prompt, self.weight(prompt)) for prompt in self)


def _row(prompt: Prompt, weight: float) -> dict[str, object]:
    row: dict[str, object] = {
        "prompt_id": prompt.id,
        "pair_id": prompt.pair_id,
        "side": prompt.side,
        "text": prompt.text,
        "gold": prompt.answer.gold,
        "weight": weight,
        **prompt.factors,
    }
    for name, (start, end) in prompt.segments.items():
        row[f"{name}_start"], row[f"{name}_end"] = start, end
    return row


def prompt_record(prompt: Prompt) -> str:
    """One canonical line with everything in a prompt, for hashing."""
    return json.dumps(
        [
            prompt.id,
            prompt.text,
            dict(prompt.segments),
            prompt.answer.record(),
            prompt.pair_id,
            prompt.side,
            dict(prompt.factors),
            dict(prompt.roles),
            [prompt.messages.turns, prompt.messages.answer_prefix],
            *[donor.record() for donor in prompt.donors],
        ],
        ensure_ascii=False,
    )


@dataclass(frozen=True)
class Design:
    """The prompts of a set as `spread` sees them: members of groups, and groups of units."""

    cells: dict[int, Cell]
    """The combination of strata of each prompt, by number."""
    members: dict[str, list[int]]
    """The numbers of each group's prompts."""
    units: dict[Cell, list[str]]
    """The groups of each unit."""
    clusters: dict[Cell, Cell]
    """What each unit shares with others, if anything."""

    def order(self, seed: int) -> Iterator[str]:
        """All groups, in the order in which `spread` takes them."""
        rng = random.Random(f"spread {seed}")
        within = random.Random(f"spread within units {seed}")
        drawn = _evenly(self._units_by_cell, rng, self.clusters)
        first = list(islice(drawn, len(self._units_by_cell)))
        for units in chain([first], ([unit] for unit in drawn)):
            groups = [group for unit in units for group in self.units[unit]]
            yield from _evenly(_by_cell(groups, self._cell_of_group), within)

    @cached_property
    def _units_by_cell(self) -> dict[Cell, list[Cell]]:
        return _by_cell(self.units, self._cell_of_unit)

    def _cell_of_group(self, group: str) -> Cell:
        """The values of its members, which may differ in a stratum."""
        return _joined([self.cells[number] for number in self.members[group]])

    def _cell_of_unit(self, unit: Cell) -> Cell:
        return _joined([self._cell_of_group(group) for group in self.units[unit]])


def _joined(cells: Sequence[Cell]) -> Cell:
    """All values of each stratum, as one value."""
    return tuple(frozenset(values) for values in zip(*cells, strict=True))


def _by_cell(items: Iterable[T], cell_of: Callable[[T], Cell]) -> dict[Cell, list[T]]:
    cells: defaultdict[Cell, list[T]] = defaultdict(list)
    for item in items:
        cells[cell_of(item)].append(item)
    return dict(cells)


def _evenly(
    cells: Mapping[Cell, Sequence[T]],
    rng: random.Random,
    clusters: Mapping[T, Hashable] = MappingProxyType({}),
) -> Iterator[T]:
    """All items, in an order whose every beginning is spread evenly over the cells' values.

    Round by round each cell that still has items gives one, drawn at random from those whose
    cluster was taken least often; within a round the cell comes next whose values were taken least
    often so far.
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
            yield queues[rows[place]].pop(turns, clusters)
        waiting = [row for row in waiting if queues[row].items]


class _Queue(Generic[T]):
    """The items of a cell in random order, those of clusters that had fewer turns before others."""

    def __init__(self, items: Sequence[T], rng: random.Random) -> None:
        self.items = [(0, rng.random(), place, item) for place, item in enumerate(items)]
        heapq.heapify(self.items)

    def pop(self, turns: Counter[Hashable], clusters: Mapping[T, Hashable]) -> T:
        """The next item; the turn of its cluster is counted."""
        while True:
            believed, key, place, item = heapq.heappop(self.items)
            cluster = clusters.get(item, item)
            # Turns only grow, so an entry that believes in fewer belongs further back.
            if believed == turns[cluster]:
                turns[cluster] += 1
                return item
            heapq.heappush(self.items, (turns[cluster], key, place, item))


def _numbered(cells: Sequence[Cell]) -> NDArray[np.int64]:
    """The values of each cell as numbers, (cell, stratum); no two strata share a number."""
    numbers: dict[tuple[int, Hashable], int] = {}
    rows = [[numbers.setdefault(value, len(numbers)) for value in enumerate(c)] for c in cells]
    return np.array(rows, dtype=np.int64, ndmin=2)


_NEVER = np.iinfo(np.int64).max // 2
"""A load that no row reaches; more can be added to it."""


def _least_taken_first(values: NDArray[np.int64], taken: NDArray[np.int64]) -> Iterator[int]:
    """All rows of `values`: next comes the first of those whose values were taken least often.

    How often is the sum of squares, so that no value runs ahead. `taken` is counted up.
    """
    loads = (taken[values] ** 2).sum(axis=1)
    for _ in values:
        row = int(loads.argmin())
        yield row
        for column, value in enumerate(values[row]):
            loads[values[:, column] == value] += 2 * taken[value] + 1
            taken[value] += 1
        loads[row] = _NEVER
