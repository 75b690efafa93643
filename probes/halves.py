"""Two halves of a prompt set that share no entity.

1. Link: the entities of a pair of prompts (B, its A, and the wrong A) belong together.
2. Order: walk each connected component from neighbour to neighbour. Where wrong answers are a
   permutation, as in RULEBREAKERS, components are cycles, and the walk goes round each of them.
3. Place whole components, largest first, into the emptier half.
4. Cut, if that leaves the halves too far apart: place all but the largest component, and split that
   one along its walk so that the halves come out even.
5. Drop the pairs whose entities came to lie in both halves: those at the two cuts of a cycle.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

DROPPED = -1
"""Half of a prompt whose entities lie in both halves."""

EVEN_ENOUGH = 0.45
"""Share of the pairs that the smaller half must hold; otherwise a component is cut."""

Neighbours = Mapping[str, Mapping[str, None]]


def entity_halves(prompts: pd.DataFrame) -> pd.Series:
    """The half of each prompt: 0 or 1, or -1 if it is dropped; indexed by prompt_id.

    No entity, neither as A nor as B, occurs in both halves. The two sides of a pair stay together.

    Args:
        prompts: the prompts table, with prompt_id, pair_id, entity_a and entity_b.
    """
    members = _entities_of_pairs(prompts)
    weights = Counter(prompts.drop_duplicates("pair_id")["entity_b"])
    half = _halve(_components(_neighbours(prompts)), weights)
    of_pair = {}
    for pair_id, entities in members.items():
        halves = {half[entity] for entity in entities}
        of_pair[pair_id] = halves.pop() if len(halves) == 1 else DROPPED
    return pd.Series(
        prompts["pair_id"].map(of_pair).to_numpy(), index=prompts["prompt_id"], name="half"
    )


def _entities_of_pairs(prompts: pd.DataFrame) -> dict[str, set[str]]:
    entities: dict[str, set[str]] = {}
    for pair_id, a, b in zip(
        prompts["pair_id"], prompts["entity_a"], prompts["entity_b"], strict=True
    ):
        entities.setdefault(pair_id, set()).update((a, b))
    return entities


def _neighbours(prompts: pd.DataFrame) -> Neighbours:
    neighbours: dict[str, dict[str, None]] = {}
    for a, b in zip(prompts["entity_a"], prompts["entity_b"], strict=True):
        neighbours.setdefault(a, {})[b] = None
        neighbours.setdefault(b, {})[a] = None
    return neighbours


def _components(neighbours: Neighbours) -> list[list[str]]:
    """The entities of each connected component, depth first."""
    components: list[list[str]] = []
    seen: set[str] = set()
    for start in neighbours:
        component: list[str] = []
        waiting = [start]
        while waiting:
            entity = waiting.pop()
            if entity not in seen:
                seen.add(entity)
                component.append(entity)
                waiting.extend(reversed(list(neighbours[entity])))
        if component:
            components.append(component)
    return components


def _halve(components: list[list[str]], weights: Counter[str]) -> dict[str, int]:
    """The half of each entity. A weight is how many pairs are about an entity."""

    def weight(entities: Sequence[str]) -> int:
        return sum(weights[entity] for entity in entities)

    components = sorted(components, key=weight, reverse=True)
    half, loads = _place_whole(components, weight)
    if min(loads) >= EVEN_ENOUGH * sum(loads):
        return half
    half, loads = _place_whole(components[1:], weight)
    lighter = loads.index(min(loads))
    room = (weight(components[0]) + loads[1 - lighter] - loads[lighter]) / 2
    for entity in components[0]:
        half[entity] = lighter if room > 0 else 1 - lighter
        room -= weights[entity]
    return half


def _place_whole(
    components: list[list[str]], weight: Callable[[Sequence[str]], int]
) -> tuple[dict[str, int], list[int]]:
    half: dict[str, int] = {}
    loads = [0, 0]
    for component in components:
        lighter = loads.index(min(loads))
        half |= dict.fromkeys(component, lighter)
        loads[lighter] += weight(component)
    return half, loads
