"""The draw of demonstrations ("shots"): prompts that a model reads with their correct answers.

Both sides of a pair get the same ones, of its phrasing and in the same order, so that they still
differ in nothing else. None comes from the pair's own cluster, shares an entity with it or has one
of its texts, and no two come from one cluster. Sides and correct answers are balanced. The draw
depends on the seed, the id of the pair and the whole data set, but not on a limit or on workers.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache

from interp.console import counted
from interp.errors import UserError, shortened
from interp.prompts.own.layout import PHRASING
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet

CLUSTERS = 256
"""Largest number of clusters from which the demonstrations of prompts of one phrasing are drawn."""

Cell = tuple[str, str]
"""The side and the correct answer of a prompt."""


class Draw:
    """The demonstrations of each pair of `prompts`, from `pool`.

    `cluster` is the factor that groups dependent prompts.
    """

    def __init__(
        self, shots: int, seed: int, prompts: PromptSet, pool: PromptSet, cluster: str | None
    ) -> None:
        self._shots, self._seed, self._cluster = shots, seed, cluster
        self._prompts, self._pool = prompts, pool
        self._members: defaultdict[str, list[int]] = defaultdict(list)
        for number, outline in zip(prompts.numbers, prompts.outlines(), strict=True):
            self._members[outline.pair_id].append(number)
        # The members of a pair are usually read one after the other.
        self._of_pair = lru_cache(maxsize=64)(self._drawn)
        self._bags = cache(self._bags_of)

    def of(self, prompt: Prompt) -> tuple[Prompt, ...]:
        """The prompts to show before a prompt, in order (UserError: too few clusters are left)."""
        return self._of_pair(prompt.pair_id, prompt.factors.get(PHRASING, ""))

    def _drawn(self, pair_id: str, phrasing: str) -> tuple[Prompt, ...]:
        members = [self._prompts.build(number) for number in self._members[pair_id]]
        taken = frozenset[object]().union(*map(self._names, members))
        bags = self._bags(phrasing)
        left = [[shown for shown, _ in bag] for bag in bags if not any(taken & n for _, n in bag)]
        if len(left) < self._shots:
            of = f" of phrasing {shortened(phrasing, 60)!r}" if phrasing else ""
            raise UserError(
                f"pair {shortened(pair_id, 60)!r} cannot have {counted(self._shots, 'shot')}: of "
                f"{counted(len(bags), 'cluster')}{of}, only {len(left):,} neither are its own nor "
                "share an entity or a text with it, and each gives one; ask for fewer shots "
                "(--shots), or add pairs"
            )
        rng = random.Random(f"shots {self._seed} {pair_id}")
        # Only the values of `random.random` are the same in all Python versions.
        bags_left = sorted(left, key=lambda _: rng.random())
        shuffled = [sorted(bag, key=lambda _: rng.random()) for bag in bags_left]
        places = balanced(
            [[(shot.side, shot.answer.gold) for shot in bag] for bag in shuffled], self._shots
        )
        chosen = [shuffled[bag][member] for bag, member in places]
        return tuple(sorted(chosen, key=lambda _: rng.random()))

    def _names(self, prompt: Prompt) -> frozenset[object]:
        """What a pair and its demonstrations must not have in common."""
        pool, factors = self._pool, prompt.factors
        together = {"unit": pool.unit, "clusters": pool.clusters, "cluster": (self._cluster or "",)}
        return frozenset(
            [
                ("pair", prompt.pair_id),
                ("text", " ".join(prompt.text.split())),
                *(("entity", prompt.text[a:b].casefold()) for a, b in prompt.roles.values()),
                *(
                    (kind, *(factors[name] for name in named))
                    for kind, named in together.items()
                    if named and set(named) <= factors.keys()
                ),
            ]
        )

    def _bags_of(self, phrasing: str) -> list[list[tuple[Prompt, frozenset[object]]]]:
        """The prompts of one pair of each cluster, with what they must not have in common."""
        clusters = self._index.get(phrasing, {})
        rng = random.Random(f"shots {self._seed} {phrasing}")
        bags = []
        for cluster in sorted(clusters, key=lambda _: rng.random())[:CLUSTERS]:
            pairs = list(clusters[cluster].values())
            members = map(self._pool.build, pairs[int(rng.random() * len(pairs))])
            bags.append([(prompt, self._names(prompt)) for prompt in members])
        return bags

    @cached_property
    def _index(self) -> dict[str, dict[object, dict[str, list[int]]]]:
        by_phrasing: dict[str, dict[object, dict[str, list[int]]]] = {}
        for number, outline in zip(self._pool.numbers, self._pool.outlines(), strict=True):
            clusters = by_phrasing.setdefault(outline.factors.get(PHRASING, ""), {})
            unit = tuple(outline.factors[name] for name in self._pool.unit)
            cluster = outline.factors.get(self._cluster or "") or unit or outline.pair_id
            pairs = clusters.setdefault(cluster, {})
            pairs.setdefault(outline.pair_id, []).append(number)
        return by_phrasing


def balanced(bags: Sequence[Sequence[Cell]], number: int) -> list[tuple[int, int]]:
    """Places in so many bags, and the bag of each, so that sides and answers occur equally often.

    They minimize the sum of the squared counts of sides and of correct answers, then that of their
    combinations, as far as exchanging one place at a time can; among equals, earlier places are
    taken. At most one place in each bag is taken.
    """
    holders: defaultdict[Cell, dict[int, int]] = defaultdict(dict)
    for bag, cells in enumerate(bags):
        for place, cell in enumerate(cells):
            holders[cell].setdefault(bag, place)
    chosen: dict[int, Cell] = {}
    counts: Counter[tuple[str, ...]] = Counter()

    def cost(cell: Cell) -> tuple[int, int]:
        return counts["side", cell[0]] + counts["gold", cell[1]], counts["both", *cell]

    def count(cell: Cell, by: int) -> None:
        for key in (("side", cell[0]), ("gold", cell[1]), ("both", *cell)):
            counts[key] += by

    def cheapest() -> tuple[tuple[int, int], int, int, Cell]:
        free = (
            (cost(cell), bag, places[bag], cell)
            for cell, places in holders.items()
            if (bag := next((bag for bag in places if bag not in chosen), None)) is not None
        )
        return min(free)

    for _ in range(number):
        _, bag, _, cell = cheapest()
        chosen[bag] = cell
        count(cell, 1)
    improved = True
    while improved:
        improved = False
        for bag, cell in list(chosen.items()):
            del chosen[bag]
            count(cell, -1)
            price, other, _, instead = cheapest()
            better = price < cost(cell)
            improved = improved or better
            chosen[other if better else bag] = instead if better else cell
            count(instead if better else cell, 1)
    return [(bag, holders[cell][bag]) for bag, cell in chosen.items()]
