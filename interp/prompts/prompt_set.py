"""A set of prompts, which are built on access, hashed, checked, and sampled evenly."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, overload

from interp.console import counted
from interp.errors import UserError, described, shortened
from interp.prompts.answers import Completion, FreeText
from interp.prompts.prompt import ALONE, Combination, DonorSource, Prompt

if TYPE_CHECKING:
    import pandas as pd

    from interp.prompts.design import Design

Prompts = TypeVar("Prompts", bound=Sequence[Prompt])

TAKEN = frozenset({"prompt_id", "pair_id", "side", "text", "gold", "weight", "messages"})
"""Columns of the prompts table that are no factors."""

_OF_SIDES = frozenset({"model", "pair", "pair_id", "paired", "weight"})
"""Columns of tables that also have a column for each side."""


class Outline(NamedTuple):
    """The part of a prompt that `spread` uses."""

    pair_id: str
    factors: Mapping[str, str]
    """Factors, including those in `strata`, `unit` and `clusters`."""


class Decisive(NamedTuple):
    """How a prompt names the segments that decide its answer."""

    factor: str
    """The factor, such as "golden_rule", whose value names these segments, separated by spaces."""
    among: tuple[str, ...]
    """Prefixes of the names of all candidate segments, including those that decide the answer."""


@dataclass(frozen=True, repr=False)
class PromptSet(Sequence[Prompt]):
    """The prompts of a system, in a fixed order.

    Each prompt is built on access, so a large set uses little memory.
    """

    system: str
    """Name of the system that the prompts come from."""
    sides: tuple[str, ...]
    """Names of a group's members: the two sides of a pair, such as ("rulebreaker",
    "non_rulebreaker"), or a base and its variants. There is a single name if the prompts form no
    groups.
    """
    strata: tuple[str, ...]
    """Factors over which `spread` distributes groups evenly."""
    build: Callable[[int], Prompt]
    """Function that builds the prompt with a given number from `numbers`."""
    numbers: Sequence[int]
    """Numbers of this set's prompts, in order."""
    seed: int = 0
    """Seed with which the set was generated."""
    description: dict[str, str] = field(default_factory=dict)
    """Source of the data, for the run's record."""
    ratio: tuple[str, str] | None = None
    """Two segments whose scores are compared, the first over the second, such as ("premise2",
    "premise1"); None if no segments are compared."""
    decisive: Decisive | None = None
    """How the data name the segments that decide an answer; None if they do not."""
    whole_groups: bool = True
    """Whether every group has a member of every side; `check` then requires it."""
    unit: tuple[str, ...] = ()
    """Factors that name a unit of the design, such as ("interpretation",): groups with equal values
    of these factors form a unit, which is crossed with everything else and which `spread` draws as
    a whole. Without such factors, each group is a unit.
    """
    clusters: tuple[str, ...] = ()
    """Factors whose values units share, such as their entities: from each combination of strata,
    `spread` takes next the unit whose values it has used least often.
    """
    turns: int = 1
    """Number of units per combination of strata with which `spread` starts; it takes one group of
    each of these units in turn. The number is two if a unit has two values of a stratum, so that a
    small subset has as many units as if each unit had one value.
    """
    weights: Mapping[Combination, float] = field(default_factory=dict)
    """Number of prompts of the whole set that a prompt represents, by combination of strata; 1 for
    combinations that are not listed.
    """
    donors: DonorSource | None = None
    """Source of replacements for the prompts' segments, if the system has donors."""
    outline: Callable[[int], Outline] | None = None
    """Function from a number to the prompt's outline, so `spread` need not build every prompt."""
    drawn_from: Sequence[int] = ()
    """Numbers of the set from which `spread` drew this one; empty for a whole set."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        about = {"sides": ", ".join(self.sides), **self.description}
        shown = "".join(f"; {name}: {shortened(value, 80)}" for name, value in about.items())
        return f"PromptSet({counted(len(self), 'prompt')} of {self.system}{shown})"

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
        """The prompts as a set; a `PromptSet` is returned unchanged.

        Raises:
            UserError: they are no sequence of prompts.
        """
        if isinstance(prompts, PromptSet):
            return prompts
        held = list(check_kinds(prompts))
        sides = tuple(dict.fromkeys(prompt.side for prompt in held))
        return cls("own prompts", sides, (), held.__getitem__, range(len(held)))

    def filter(self, keep: Callable[[Prompt], bool]) -> "PromptSet":
        """The prompts for which a function holds, as `lambda prompt: prompt.side == "follows"`.

        Donors and demonstrations are those of the whole set, and weights those of the sample.
        """
        kept = {n: prompt for n, prompt in zip(self.numbers, self, strict=True) if keep(prompt)}
        left = {prompt.side for prompt in kept.values()}
        drawn = {name: value for name, value in self.description.items() if name != "spread_seed"}
        return replace(
            self,
            numbers=list(kept),
            sides=tuple(side for side in self.sides if side in left),
            description={**drawn, "filtered": f"{len(kept):,} of {counted(len(self), 'prompt')}"},
            whole_groups=False,
            drawn_from=self.drawn_from or self.numbers,
        )

    def content_hash(self) -> str:
        """A hash of everything in the prompts, in order."""
        return self._content[0]

    def parser_modules(self) -> frozenset[str]:
        """The modules that contain the functions that judge generated text."""
        return self._content[1]

    def columns(self) -> Mapping[str, object]:
        """The columns of the prompts table, each with an example."""
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
            around = () if prompt.messages == ALONE else ("messages",)
            layout = (*prompt.factors, *prompt.segments, *around)
            if layout not in layouts:
                layouts.add(layout)
                columns = {**columns, **_row(prompt, 1.0), **columns}
        return digest.hexdigest(), frozenset(modules), columns

    def check(self) -> None:
        """Check names, and that a group has each side once or, if not whole, at most once."""
        self.check_names()
        sides: defaultdict[str, list[str]] = defaultdict(list)
        for prompt in self:
            sides[prompt.pair_id].append(prompt.side)
        for pair_id, present in sides.items():
            missing = set(self.sides) - set(present) if self.whole_groups else set()
            if missing or len(set(present)) < len(present) or not set(present) <= set(self.sides):
                raise UserError(
                    f"pair {pair_id!r} has the sides {', '.join(present)}; expected "
                    f"{'' if self.whole_groups else 'at most '}one {' and one '.join(self.sides)}"
                )

    def check_names(self) -> None:
        """Raise a UserError if an id occurs twice, or a side or factor is named like a column."""
        if taken := _OF_SIDES.intersection(self.sides):
            raise UserError(
                f"a side is named {min(taken)!r}, as a column of the tables about pairs is; rename "
                "the side"
            )
        ids: set[str] = set()
        factors: set[str] = set()
        places: set[str] = set()
        for place, prompt in enumerate(self):
            if taken := TAKEN & prompt.factors.keys():
                raise UserError(
                    f"prompt {shortened(prompt.id, 60)!r} has a factor {min(taken)!r}, which is "
                    "already a column of the prompts table; rename the factor"
                )
            if prompt.id in ids:
                raise UserError(
                    f"prompts[{place}] has the prompt id {prompt.id!r}, like an earlier prompt; "
                    "give each prompt a unique id"
                )
            ids.add(prompt.id)
            factors.update(prompt.factors)
            places.update(f"{name}_{end}" for name in prompt.segments for end in ("start", "end"))
        if placed := factors & places:
            raise UserError(
                f"the factor {min(placed)} has the name of the column of the prompts table with "
                "the place of a segment; rename the factor"
            )

    def spread(self, pairs: int, seed: int = 0) -> "PromptSet":
        """A subset of whole pairs or groups, spread evenly over the strata, in the order drawn.

        Units of the design are drawn by `seed`, so that all values of a stratum occur equally often
        as far as the set allows. All groups of a unit are taken before the next unit begins, so at
        most the last unit is incomplete. The first `turns` units of each combination of strata are
        an exception: they contribute one group each in turn, so that even a small subset is spread
        over the strata.

        Larger subsets begin with the smaller ones, so nothing is measured twice.

        Raises:
            UserError: fewer than one pair was requested.
        """
        if not isinstance(pairs, int) or pairs < 1:
            raise UserError(f"the limit is {pairs!r}; expected a whole number of pairs, at least 1")
        design = self._design
        drawn = islice(design.order(seed), pairs)
        chosen = [place for group in drawn for place in design.groups[group]]
        held, taken = Counter(design.cell_of), Counter(design.cell_of[place] for place in chosen)
        return replace(
            self,
            numbers=[self.numbers[place] for place in chosen],
            description={**self.description, "pairs": str(pairs), "spread_seed": str(seed)},
            weights={
                design.cells[code]: self.weights.get(design.cells[code], 1.0) * held[code] / count
                for code, count in taken.items()
            },
            drawn_from=self.drawn_from or self.numbers,
        )

    def clusters_drawn(self, factor: str) -> tuple[int, Iterator[int]]:
        """How many values of a factor there are to draw, and the first 1, 2, 3 ... pairs have."""
        whole = replace(self, numbers=self.drawn_from or self.numbers)
        values = [outline.factors.get(factor, outline.pair_id) for outline in whole.outlines()]

        def growing() -> Iterator[int]:
            drawn = set[str]()
            for group in whole._design.order(int(self.description["spread_seed"])):
                drawn.update(values[place] for place in whole._design.groups[group])
                yield len(drawn)

        return len(set(values)), growing()

    def weight(self, prompt: Prompt) -> float:
        """The number of prompts in a prompt's stratum, divided by the number drawn from it."""
        return self.weights.get(_values(prompt.factors, self.strata), 1.0)

    @cached_property
    def _design(self) -> "Design":
        # It imports numpy, which commands that draw nothing do not wait for.
        from interp.prompts.design import Design

        cells, cell_of = dict[Combination, int](), list[int]()
        groups, units = dict[str, list[int]](), dict[Combination, list[int]]()
        clusters: list[Combination] = []
        for place, (pair_id, factors) in enumerate(self.outlines()):
            cell_of.append(cells.setdefault(_values(factors, self.strata), len(cells)))
            if pair_id not in groups:
                unit = _values(factors, self.unit) or (pair_id,)
                if unit not in units:
                    clusters.append(_values(factors, self.clusters) or unit)
                units.setdefault(unit, []).append(len(groups))
            groups.setdefault(pair_id, []).append(place)
        parts = [*groups.values()], [*units.values()]
        return Design([*cells], cell_of, *parts, clusters, self.turns)

    def outlines(self) -> Iterator[Outline]:
        """The outline of each prompt, in order."""
        if self.outline is not None:
            return map(self.outline, self.numbers)
        return (Outline(prompt.pair_id, prompt.factors) for prompt in self)

    def groups(self) -> Iterator[list[int]]:
        """The numbers of the prompts of each pair or group."""
        return ([self.numbers[place] for place in group] for group in self._design.groups)

    def to_frame(self) -> "pd.DataFrame":
        """The prompts table (`interp.tables`)."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def rows(self) -> Iterator[dict[str, object]]:
        """The prompts as rows of the prompts table, one at a time."""
        return (_row(prompt, self.weight(prompt)) for prompt in self)


def check_kinds(prompts: Any) -> Sequence[Prompt]:
    """The given value if it is a sequence of prompts; else a UserError says how to make one."""
    if isinstance(prompts, str) or not isinstance(prompts, Sequence):
        raise UserError(
            f"prompts is {described(prompts)}; expected a list of prompts, as returned by "
            f"interp.load_prompts{_way_to_prompts(prompts)}"
        )
    for place, prompt in enumerate(() if isinstance(prompts, PromptSet) else prompts):
        if not isinstance(prompt, Prompt):
            raise UserError(
                f"prompts[{place}] is {described(prompt)}; expected a Prompt"
                f"{_way_to_prompts(prompt)}"
            )
    return prompts


def _way_to_prompts(given: object) -> str:
    """How to make prompts of a value that is none."""
    if isinstance(given, Prompt):
        return "; put a single prompt into a list: [prompt]"
    if isinstance(given, str | Path | Mapping) or hasattr(given, "columns"):
        return (
            "; interp.read_pairs(table) makes prompts of a file or of pandas.DataFrame(rows), and "
            "interp.scan(model, text) looks at one text"
        )
    if isinstance(given, Iterable) and not isinstance(given, Sequence):
        return "; list(prompts) makes a list of other collections"
    return ""


def _values(factors: Mapping[str, str], names: Sequence[str]) -> Combination:
    return tuple(map(factors.__getitem__, names))


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
    if prompt.messages != ALONE:
        row["messages"] = json.dumps(prompt.messages.record(), ensure_ascii=False)
    return row


def on_sides(prompts: Prompts, sides: Sequence[str]) -> Prompts:
    """The prompts on some sides, which groups of more sides then consist of alone.

    Raises:
        UserError: no prompt belongs to one of the sides.
    """
    all_sides = [prompt.side for prompt in prompts]
    for side in sides:
        if side not in all_sides:
            listed = ", ".join(dict.fromkeys(all_sides))
            raise UserError(f"no prompt belongs to the side {side!r}; the sides are {listed}")
    kept = [place for place, side in enumerate(all_sides) if side in sides]
    return at_places(prompts, kept, sides=tuple(sides))


def at_places(prompts: Prompts, places: Sequence[int], **changes: Any) -> Prompts:
    """The prompts at some places, in their order; of a set, with changed fields."""
    if isinstance(prompts, PromptSet):
        changes["numbers"] = [prompts.numbers[place] for place in places]
        return cast("Prompts", replace(prompts, **changes))
    return cast("Prompts", [prompts[place] for place in places])


def counting_notes(prompts: Sequence[Prompt], unit: str | None) -> str:
    """What to know before measuring: texts that count several times, and pairs of one prompt.

    `unit` is the factor whose values are taken for independent; None for pairs.
    """
    units: defaultdict[str, set[str]] = defaultdict(set)
    pairs: defaultdict[str, set[str]] = defaultdict(set)
    for prompt in prompts:
        text = " ".join(prompt.text.split())
        units[text].add(prompt.factors.get(unit or "", prompt.pair_id))
        pairs[text].add(prompt.pair_id)
    notes: list[str] = []
    if apart := sum(len(its_units) > 1 for its_units in units.values()):
        notes.append(
            f"{counted(apart, 'text')} of prompts occur in several units of tests "
            f"({unit or 'pair_id'}), which count as independent"
        )
    if together := sum(len(its_pairs) > 1 == len(units[text]) for text, its_pairs in pairs.items()):
        notes.append(
            f"{counted(together, 'text')} of prompts occur in several pairs, which count as one "
            "pair in tests and intervals"
        )
    # Facts form no pairs.
    paired = (prompt.pair_id for prompt in prompts if not isinstance(prompt.answer, Completion))
    return "; ".join(filter(None, [*notes, note_alone(paired)]))


def note_alone(pair_ids: Iterable[str]) -> str:
    """How many pairs have one prompt, given the pair of each prompt; empty if none has."""
    members = Counter(pair_ids)
    alone = [pair for pair, count in members.items() if count == 1]
    if not alone:
        return ""
    return (
        f"{len(alone):,} of {counted(len(members), 'pair')} have one prompt, such as "
        f"{shortened(alone[0], 60)}, and do not count in paired accuracy"
    )


def prompt_record(prompt: Prompt) -> str:
    """A canonical line with the full content of a prompt, for hashing."""
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
            *([] if prompt.thought is None else [prompt.thought.record()]),
        ],
        ensure_ascii=False,
    )
