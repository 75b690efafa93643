"""Splits a prompt set into two halves that share no entity (or another unit, such as a pair).

1. Link: the entities of a pair of prompts (B, its A, and the wrong A) belong together.
2. Order: walk each connected component from neighbor to neighbor. If wrong answers are a
   permutation, as in RULEBREAKERS, components are cycles, and the walk follows each cycle.
3. Cut each component along its walk into two even parts, if this loses few pairs.
4. Place each of the other components whole, starting with the largest, into the half with fewer
   pairs of its entity group, so that each group is in both halves. Groups with only a few different
   As, such as animals, stay within one half.
5. While the halves of a group are too unequal, also cut the component of the group that loses the
   fewest pairs.
6. Drop the pairs whose entities are in different halves.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pandas as pd

ENTITIES = ("entity_a", "entity_b")
"""The factors that hold a pair's entities."""

GROUP = "entity_group"
"""The factor that gives the entity group; each group should be in both halves."""

DROPPED = -1
"""Value for prompts whose entities lie in different halves."""

FEW = 0.1
"""Largest share of a component's pairs that a cut may lose."""

EVEN_ENOUGH = 0.4
"""Minimum share of a group's pairs in the smaller half; with fewer, a whole component is cut."""


def with_entities(prompts: pd.DataFrame, unit: str | None) -> pd.DataFrame:
    """The prompts table with entities; if it has none, each prompt's unit stands for both entities.

    `unit` is the factor whose values group dependent prompts; pair_id if None.
    """
    if set(ENTITIES) <= set(prompts):
        return prompts
    return prompts.assign(**dict.fromkeys(ENTITIES, prompts[unit or "pair_id"]))


def entity_halves(prompts: pd.DataFrame) -> pd.Series:
    """The half of each prompt: 0 or 1, or -1 if it is dropped; indexed by prompt_id.

    No entity occurs in both halves, either as A or as B. The two sides of a pair stay together.
    `prompts` may have an entity_group; each group is then in both halves, if this is possible.
    """
    pairs: dict[str, dict[str, None]] = {}
    neighbors: defaultdict[str, dict[str, None]] = defaultdict(dict)
    columns = (prompts[name] for name in ("pair_id", "entity_a", "entity_b"))
    for pair_id, a, b in zip(*columns, strict=True):
        pairs.setdefault(pair_id, {b: None})[a] = None
        neighbors[a][b] = None
        neighbors[b][a] = None
    groups = dict(zip(prompts["entity_b"], prompts[GROUP], strict=True)) if GROUP in prompts else {}
    half = _halve(_components(neighbors, list(map(list, pairs.values())), groups))
    of_pair = {pair_id: _half_of(entities, half) for pair_id, entities in pairs.items()}
    return pd.Series(
        prompts["pair_id"].map(of_pair).to_numpy(), index=prompts["prompt_id"], name="half"
    )


def _half_of(entities: Iterable[str], half: Mapping[str, int]) -> int:
    halves = {half[entity] for entity in entities}
    return halves.pop() if len(halves) == 1 else DROPPED


@dataclass(frozen=True)
class _Component:
    """A set of entities that pairs link to each other."""

    cut: Mapping[str, int]
    """The half that each entity is in if the component is cut behind half of its pairs."""
    group: Hashable
    """Group of the first pair's B."""
    pairs: int
    kept: tuple[int, int]
    """Number of pairs that the cut leaves in each half."""

    @property
    def lost(self) -> int:
        """Number of pairs that are dropped by the cut."""
        return self.pairs - sum(self.kept)


def _components(
    neighbors: Mapping[str, Iterable[str]],
    pairs: Sequence[Sequence[str]],
    groups: Mapping[str, Hashable],
) -> list[_Component]:
    """The connected components, starting with the most pairs; a pair's first entity is its B."""
    about: defaultdict[str, list[Sequence[str]]] = defaultdict(list)
    for pair in pairs:
        about[pair[0]].append(pair)
    components = []
    for walk in _walks(neighbors):
        passed = list(accumulate(len(about[entity]) for entity in walk))
        cut = {
            entity: int(2 * now - len(about[entity]) > passed[-1])
            for entity, now in zip(walk, passed, strict=True)
        }
        halves = Counter(_half_of(pair, cut) for entity in walk for pair in about[entity])
        first_b = next(iter(neighbors[walk[0]]))
        kept, group = (halves[0], halves[1]), groups.get(first_b)
        components.append(_Component(cut, group, passed[-1], kept))
    return sorted(components, key=lambda component: -component.pairs)


def _walks(neighbors: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """The entities of each connected component, depth first."""
    seen: set[str] = set()
    for start in neighbors:
        walk: list[str] = []
        waiting = [start]
        while waiting:
            entity = waiting.pop()
            if entity not in seen:
                seen.add(entity)
                walk.append(entity)
                waiting.extend(reversed(list(neighbors[entity])))
        if walk:
            yield walk


def _halve(components: Sequence[_Component]) -> dict[str, int]:
    """The half of each entity; a cut must leave pairs in both halves and lose few."""
    whole = [one for one in components if min(one.kept) == 0 or one.lost > FEW * one.pairs]
    while True:
        half, loads = _placed(components, whole)
        waiting = [
            component
            for component in whole
            if min(component.kept) > 0
            and min(loads[component.group]) < EVEN_ENOUGH * sum(loads[component.group])
        ]
        if not waiting:
            return half
        whole.remove(min(waiting, key=lambda component: component.lost))


def _placed(
    components: Sequence[_Component], whole: Sequence[_Component]
) -> tuple[dict[str, int], dict[Hashable, list[int]]]:
    """The half of each entity, and the pairs of each group in each half."""
    half: dict[str, int] = {}
    total = [0, 0]
    loads: defaultdict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    cut = [component for component in components if component not in whole]
    for component in (*cut, *whole):
        load = loads[component.group]
        pairs, sides = component.kept, component.cut
        if component in whole:
            lighter = min((0, 1), key=lambda side: (load[side], total[side]))
            pairs = (component.pairs * (lighter == 0), component.pairs * lighter)
            sides = dict.fromkeys(sides, lighter)
        half |= sides
        for side in (0, 1):
            load[side] += pairs[side]
            total[side] += pairs[side]
    return half, loads
