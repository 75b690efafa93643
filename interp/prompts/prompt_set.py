"""A set of prompts: built when read, hashed, checked, and thinned evenly."""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from interp.errors import UserError
from interp.prompts.donors import DonorSource
from interp.prompts.prompt import Prompt


@dataclass(frozen=True)
class PromptSet(Sequence[Prompt]):
    """The prompts of a system, in a fixed order.

    A prompt is built when it is read, so a large set costs little memory.
    """

    system: str
    """Name of the system that the prompts come from."""
    sides: tuple[str, ...]
    """What the members of a group are called: the two sides of a pair, such as ("rulebreaker",
    "non_rulebreaker"), or a base and its variants; one name where prompts stand alone."""
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
    whole_groups: bool = True
    """Whether every group has a member of every side, which `check` then asks for."""
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
        digest = hashlib.sha256()
        for prompt in self:
            digest.update(prompt_record(prompt).encode())
        return digest.hexdigest()

    def check(self) -> None:
        """Check that ids are unique and that every group has each side once.

        Where groups are not whole, each has some of the sides, at most once.

        Raises:
            UserError: a duplicate id, or a group that lacks or repeats a side or has an unknown
                one.
        """
        ids: set[str] = set()
        sides: defaultdict[str, list[str]] = defaultdict(list)
        for prompt in self:
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

        Every value of every stratum occurs as often as any other, within what the set holds; which
        pairs stand for a combination of values is drawn by `seed`. A larger subset begins with a
        smaller one, so that what was measured of that one need not be measured again.

        Raises:
            UserError: fewer than one pair asked for.
        """
        if not isinstance(pairs, int) or pairs < 1:
            raise UserError(f"the limit is {pairs!r}; expected a number of at least one pair")
        members, cells = self._pairs
        rng = random.Random(f"spread {seed}")
        drawn = islice(_evenly({cell: list(ids) for cell, ids in cells.items()}, rng), pairs)
        chosen = [number for pair_id in drawn for number in members[pair_id]]
        return replace(
            self,
            numbers=chosen,
            description={**self.description, "pairs": str(pairs), "spread_seed": str(seed)},
        )

    @cached_property
    def _pairs(self) -> tuple[dict[str, list[int]], dict[tuple[str, ...], list[str]]]:
        """The numbers of each pair's prompts, and the pairs of each combination of strata."""
        members: defaultdict[str, list[int]] = defaultdict(list)
        cells: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for number, prompt in zip(self.numbers, self, strict=True):
            members[prompt.pair_id].append(number)
            cells[tuple(prompt.factors[name] for name in self.strata)][prompt.pair_id] = None
        return dict(members), {cell: list(ids) for cell, ids in cells.items()}

    @property
    def numbers_by_group(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the prompts of each pair or group, by its id."""
        return self._pairs[0]

    def to_frame(self) -> pd.DataFrame:
        """One row a prompt: id, pair, side, text, gold answer and one column a factor."""
        return pd.DataFrame([prompt_row(prompt) for prompt in self])


def prompt_row(prompt: Prompt) -> dict[str, object]:
    """A prompt as a row of the prompts table; spans are columns premise1_start, premise1_end ..."""
    row: dict[str, object] = {
        "prompt_id": prompt.id,
        "pair_id": prompt.pair_id,
        "side": prompt.side,
        "text": prompt.text,
        "gold": prompt.answer.gold,
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


def _evenly(cells: dict[tuple[str, ...], list[str]], rng: random.Random) -> Iterator[str]:
    """All pair ids, in an order whose every beginning is spread evenly over the cells' values.

    Round by round each cell that still has pairs gives one, drawn at random; within a round the
    cell comes next whose values were taken least often so far.
    """
    for ids in cells.values():
        keys = {pair_id: rng.random() for pair_id in ids}
        ids.sort(key=keys.__getitem__, reverse=True)
    values = _numbered(list(cells))
    taken = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    waiting = list(enumerate(cells.values()))
    while waiting:
        keys_of_round = [rng.random() for _ in waiting]
        order = sorted(range(len(waiting)), key=keys_of_round.__getitem__)
        rows = np.array([waiting[place][0] for place in order])
        for place in _least_taken_first(values[rows], taken):
            yield waiting[order[place]][1].pop()
        waiting = [(row, ids) for row, ids in waiting if ids]


def _numbered(cells: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
    """The values of each cell as numbers, (cell, stratum); no two strata share a number."""
    numbers: dict[tuple[int, str], int] = {}
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
