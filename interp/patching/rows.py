"""Exact patching: every cell is one row of a forward pass.

1. Both prompts of a pair are run once.
2. Cells that cannot change the answer are not run: their two activations are equal, or nothing that
   leads to the answer reads them.
3. The cells of a site and layer are run together, one row per cell, sorted by their first token.
   Of sets of cells, each is one row, at all of its sites and layers at once (`joint.py`).
4. The logits that each row ends with give its metric.

How much of the model a pass has to run depends on whether its tokens see those after them: see
`grid.py` for causal models, `whole.py` for encoders.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool
from torch import Tensor

from interp.choices import SITES
from interp.models.model import Model
from interp.models.sites import Location, layer_count, locate, residual_scale
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    has_counterpart,
    patched_positions,
)
from interp.patching.joint import LocatedEdit, joint_edits, places_of, write
from interp.patching.passes import PairPasses, SiteKey, Written
from interp.reading.budget import TokenBudget, in_chunks


@dataclass(frozen=True, slots=True)
class Row:
    """One cell that has to be run."""

    index: int
    """Its place among all cells."""
    positions: list[int]
    head: int | None


class ExactRows(ABC):
    """Rows of cells in forward passes that hold as many tokens as the budget says."""

    def __init__(self, model: Model, *, budget: TokenBudget) -> None:
        self._model = model
        self.layers = layer_count(model)
        self._budget = budget

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell."""
        keys = sorted({(cell.site, cell.layer) for cell in cells})
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            base, source = passes.metrics
            metrics = [base if has_counterpart(pair, cell) else UNDEFINED for cell in cells]
            for key in keys:
                for row, metric in self._run_site(passes, key, cells):
                    metrics[row.index] = metric
        return PatchedMetrics(base, source, tuple(metrics))

    @torch.no_grad()
    def patch_sets(self, pair: PatchingPair, sets: Sequence[Sequence[Cell]]) -> list[float]:
        """The metric of a pair under each set of cells, all of which are patched at once.

        Every cell holds the activation of the source prompt, whatever the other cells do; all that
        is in no cell is computed from them. Attention patterns cannot be among the cells.
        """
        keys = sorted({(cell.site, cell.layer) for cells in sets for cell in cells})
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            run = partial(self._run_sets, passes)
            width = len(pair.base) - pair.shared
            chunks = in_chunks(sets, run, tokens=lambda unused: width, budget=self._budget)
            return [metric for _, metrics in chunks for metric in metrics]

    def _run_sets(self, passes: PairPasses, sets: Sequence[Sequence[Cell]]) -> list[float]:
        """The metric of each set, by one forward pass."""
        places = places_of(passes.pair, sets, layers=self.layers)
        if not places:
            return [passes.metrics[0]] * len(sets)
        first = min(position for of_site in places.values() for _, position, _ in of_site)
        start = self._start(first)
        edits = joint_edits(self._model, passes, places, start=start)
        return self._run(passes, edits, rows=len(sets), start=start)

    def _run_site(
        self, passes: PairPasses, key: SiteKey, cells: Sequence[Cell]
    ) -> Iterator[tuple[Row, float]]:
        """The cells of a site and layer that can change the answer, with their metrics."""
        location, base, written = self._acting(passes, *key)
        rows = list(_rows_to_run(passes.pair, key, cells, base != written, self.layers))
        rows.sort(key=lambda row: row.positions[0])

        def run(chunk: Sequence[Row]) -> list[float]:
            start = self._start(chunk[0].positions[0])
            places = [
                (number, position, row.head or 0)
                for number, row in enumerate(chunk)
                for position in row.positions
            ]
            edit = write(location, written, places, start=start, shared=passes.pair.shared)
            return self._run(passes, [(location, edit)], rows=len(chunk), start=start)

        width = len(passes.pair.base)
        for chunk, metrics in in_chunks(
            rows, run, tokens=lambda row: width - self._start(row.positions[0]), budget=self._budget
        ):
            yield from zip(chunk, metrics, strict=True)

    def _acting(
        self, passes: PairPasses, name: str, layer: int
    ) -> tuple[Location, Written, Written]:
        """Where a site acts, what is there in the base prompt, and what a patch writes there."""
        site = SITES[name]
        location = locate(self._model, site.patched_at, layer)
        if site.is_weights:
            return location, *passes.outputs_of_heads(layer)
        view = locate(self._model, name, layer).view
        base, written = passes.activations((name, layer), view)
        if site.beside is not None:
            # What acts adds what is missing to the stream beside it.
            before = view(passes.base.values[site.beside, layer])[0]
            scale = residual_scale(self._model)
            base, written = (base - before) / scale, (written - before) / scale
        return location, base, written

    @abstractmethod
    def _start(self, first: int) -> int:
        """The first token that a forward pass has to read, if this is the first patched one."""

    @abstractmethod
    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        """What passes need around them, for the logits of a pair's answers."""

    @abstractmethod
    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        """Both prompts run once, with the sites of `keys` and what `_run` needs."""

    @abstractmethod
    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metrics of copies of the base prompt from a token on, by one edited forward pass."""


def _rows_to_run(
    pair: PatchingPair,
    key: SiteKey,
    cells: Sequence[Cell],
    differs: Bool[Tensor, "token head size"],
    layers: int,
) -> Iterator[Row]:
    """The cells of a site and layer at which a patch writes something else that is read."""
    by_head = differs.any(-1).tolist()
    for index, cell in enumerate(cells):
        if (cell.site, cell.layer) == key:
            positions = [
                position
                for position in patched_positions(pair, cell, layers=layers)
                if by_head[position - pair.shared][cell.head or 0]
            ]
            if positions:
                yield Row(index, positions, cell.head)
