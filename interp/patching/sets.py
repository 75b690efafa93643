"""Nested sets of cells: how much of the source's metric the top cells of a ranking recover.

The cells that can change the answer are ranked by their absolute effects, exact or estimated, and
at random as a control. Growing sets of the top cells are patched, with all cells of a set patched
at once.
"""

import math
import random
from collections.abc import Iterator, Sequence

from interp.patching.cells import Cell, PatchedMetrics, PatchingPair, patched_positions
from interp.patching.exact import ExactRows

PER_MILLE = (1, 2, 5, 10, 20, 50, 100, 200, 350, 500, 750, 1000)
"""Sizes of sets in thousandths of the cells, rounded up to whole cells. Sizes are densest for
small sets, where rankings differ."""

RANDOM = "random"
"""Name of the random ranking."""


NestedSet = tuple[str, int, int, float]
"""A method whose effects rank cells, or `RANDOM`; how many of the first cells of how many are
patched; and the metric then, in logits."""


def patch_nested(
    grid: ExactRows, pair: PatchingPair, by_method: tuple[str, Sequence[Cell], PatchedMetrics]
) -> Iterator[NestedSet]:
    """Patch nested sets of cells, ranked at random and by effect.

    `by_method` is the method that ranks the cells, the cells, and their metrics under it.
    """
    method, cells, metrics = by_method
    acting = [
        (abs(metric - metrics.base), cell)
        for cell, metric in zip(cells, metrics.cells, strict=True)
        if math.isfinite(metric) and patched_positions(pair, cell, layers=grid.layers_read)
    ]
    if not acting or not math.isfinite(metrics.source):
        return
    chance = random.Random(f"order of {pair.base.prompt.pair_id}")
    rankings = {
        method: sorted(acting, key=lambda ranked: -ranked[0]),
        RANDOM: sorted(acting, key=lambda unused: chance.random()),
    }
    sizes = set_sizes(len(acting))
    for ranking, order in rankings.items():
        sets = [[cell for _, cell in order[:size]] for size in sizes]
        for size, metric in zip(sizes, grid.patch_sets(pair, sets), strict=True):
            yield ranking, size, len(acting), metric


def set_sizes(cells: int) -> tuple[int, ...]:
    """Sizes of the sets in ascending order; the last set includes every cell."""
    return tuple(sorted({-(-cells * share // 1000) for share in PER_MILLE}))
