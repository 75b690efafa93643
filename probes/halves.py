"""Two halves of a prompt set that share no entity.

1. Link: the entities of a pair of prompts (B, its A, and the wrong A) belong together.
2. Order: walk each connected component from neighbour to neighbour. Where wrong answers are a
   permutation, as in RULEBREAKERS, components are cycles, and the walk goes round each of them.
3. Cut each component along its walk into two even parts, if that loses few pairs.
4. Place the others whole, largest first, into the half that has less of their group of entities, so
   that each group is in both halves. Kinds with a handful of As, such as animals, lie in one half.
5. If that leaves the halves too far apart, cut the largest of these too.
6. Drop the pairs whose entities came to lie in both halves.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pandas as pd

GROUP = "entity_group"
"""The factor whose values, the groups of entities, are to be in both halves."""

DROPPED = -1
"""Half of a prompt whose entities lie in both halves."""

FEW = 0.1
"""Largest share of a component's pairs that may be lost for it to be cut."""

EVEN_ENOUGH = 0.35
"""Share of the pairs that the smaller half must hold; otherwise the largest whole component is cut
whatever it loses."""

Neighbours = Mapping[str, Mapping[str, None]]


def entity_halves(prompts: pd.DataFrame) -> pd.Series:
    """The half of each prompt: 0 or 1, or -1 if it is dropped; indexed by prompt_id.

    No entity, neither as A nor as B, occurs in both halves. The two sides of a pair stay together.

    Args:
        prompts: the prompts table, with prompt_id, pair_id, entity_a and entity_b, and entity_group
            if each group is to be in both halves.
    """
    pairs = _entities_of_pairs(prompts)
    groups = dict(zip(prompts["entity_b"], prompts[GROUP], strict=True)) if GROUP in prompts else {}
    half = _halve(_components(_neighbours(prompts), list(pairs.values()), groups))
    of_pair = {pair_id: _half_of(entities, half) for pair_id, entities in pairs.items()}
    return pd.Series(
        prompts["pair_id"].map(of_pair).to_numpy(), index=prompts["prompt_id"], name="half"
    )


def _half_of(entities: Sequence[str], half: Mapping[str, int]) -> int:
    halves = {half[entity] for entity in entities}
    return halves.pop() if len(halves) == 1 else DROPPED


def _entities_of_pairs(prompts: pd.DataFrame) -> dict[str, list[str]]:
    """The entities of each pair, B first."""
    entities: dict[str, dict[str, None]] = {}
    for pair_id, a, b in zip(
        prompts["pair_id"], prompts["entity_a"], prompts["entity_b"], strict=True
    ):
        entities.setdefault(pair_id, {b: None})[a] = None
    return {pair_id: list(found) for pair_id, found in entities.items()}


def _neighbours(prompts: pd.DataFrame) -> Neighbours:
    neighbours: dict[str, dict[str, None]] = {}
    for a, b in zip(prompts["entity_a"], prompts["entity_b"], strict=True):
        neighbours.setdefault(a, {})[b] = None
        neighbours.setdefault(b, {})[a] = None
    return neighbours


@dataclass(frozen=True)
class _Component:
    """Entities that pairs link with each other."""

    cut: Mapping[str, int]
    """The half of each entity, if the component is cut."""
    group: Hashable
    """That of the first pair's B."""
    pairs: tuple[int, int]
    """How many pairs are about an entity of either half."""
    lost: float
    """Share of the pairs that the cut drops."""


def _components(
    neighbours: Neighbours, pairs: Sequence[Sequence[str]], groups: Mapping[str, Hashable]
) -> list[_Component]:
    """The connected components, those with most pairs first."""
    weights = Counter(b for b, *_ in pairs)
    cuts = [_cut(walk, weights) for walk in _walks(neighbours)]
    number = {entity: index for index, cut in enumerate(cuts) for entity in cut}
    members: defaultdict[int, list[Sequence[str]]] = defaultdict(list)
    for pair in pairs:
        members[number[pair[0]]].append(pair)
    components = [
        _component(cuts[index], found, groups.get(found[0][0])) for index, found in members.items()
    ]
    return sorted(components, key=lambda component: -sum(component.pairs))


def _component(
    cut: Mapping[str, int], pairs: Sequence[Sequence[str]], group: Hashable
) -> _Component:
    second = sum(cut[b] for b, *_ in pairs)
    lost = sum(_half_of(pair, cut) == DROPPED for pair in pairs) / len(pairs)
    return _Component(cut, group, (len(pairs) - second, second), lost)


def _walks(neighbours: Neighbours) -> list[list[str]]:
    """The entities of each connected component, depth first."""
    walks: list[list[str]] = []
    seen: set[str] = set()
    for start in neighbours:
        walk: list[str] = []
        waiting = [start]
        while waiting:
            entity = waiting.pop()
            if entity not in seen:
                seen.add(entity)
                walk.append(entity)
                waiting.extend(reversed(list(neighbours[entity])))
        if walk:
            walks.append(walk)
    return walks


def _cut(walk: Sequence[str], weights: Counter[str]) -> dict[str, int]:
    """The half of each entity of a walk, with half of the pairs on either side."""
    passed = list(accumulate(weights[entity] for entity in walk))
    return {
        entity: int(2 * now - weights[entity] > passed[-1])
        for entity, now in zip(walk, passed, strict=True)
    }


def _halve(components: Sequence[_Component]) -> dict[str, int]:
    """The half of each entity."""
    whole = [component for component in components if component.lost > FEW]
    while True:
        cut = [component for component in components if component not in whole]
        half, loads = _placed(cut, whole)
        if not whole or min(loads) >= EVEN_ENOUGH * sum(loads):
            return half
        whole = whole[1:]


def _placed(
    cut: Sequence[_Component], whole: Sequence[_Component]
) -> tuple[dict[str, int], list[int]]:
    """The half of each entity, and the pairs in each half."""
    half: dict[str, int] = {}
    loads = [0, 0]
    of_group: defaultdict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    for component in (*cut, *whole):
        own = of_group[component.group]
        pairs, sides = component.pairs, component.cut
        if component in whole:
            lighter = min((0, 1), key=lambda side: (own[side], loads[side]))
            pairs = (sum(pairs) * (lighter == 0), sum(pairs) * lighter)
            sides = dict.fromkeys(sides, lighter)
        half |= sides
        for side in (0, 1):
            own[side] += pairs[side]
            loads[side] += pairs[side]
    return half, loads
