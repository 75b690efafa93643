"""The base class of backends that patch through another library."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.choices import SITES
from interp.models.model import Model
from interp.models.precision import wide
from interp.patching.alignment import bring, bring_pattern
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    has_counterpart,
)
from interp.patching.passes import SiteKey, Written, metrics_of

Activations = Callable[[SiteKey], Tensor]
"""Activations of a prompt at a site and layer: (token, head, size), with one head if the site has
none, or (head, query, key) for attention weights."""

Logits = Float[Tensor, "row vocabulary"]
"""Logits of the last position."""


class LibraryBackend(ABC):
    """A backend that reads and patches whole prompts through another library."""

    def __init__(self, model: Model) -> None:
        model.check_whole("a library's backend")
        self._model = model

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell.

        Raises:
            UserError: the library lacks the site of a cell.
        """
        metrics = [UNDEFINED] * len(cells)
        with self._model.measuring():
            base_logits, base = self._read(pair.base.token_ids)
            source_logits, source = self._read(pair.source.token_ids)
            for key in sorted({(cell.site, cell.layer) for cell in cells}):
                written = self._written(pair, key, base, source)
                for index, cell in enumerate(cells):
                    if (cell.site, cell.layer) == key and has_counterpart(pair, cell):
                        (metrics[index],) = _metrics(self._patched(pair, cell, written), pair)
        (base_metric,), (source_metric,) = (
            _metrics(logits, pair) for logits in (base_logits, source_logits)
        )
        return PatchedMetrics(base_metric, source_metric, tuple(metrics))

    def _written(
        self, pair: PatchingPair, key: SiteKey, base: Activations, source: Activations
    ) -> Written:
        """The activations that a patch writes; for attention weights, (query, head, key)."""
        site = SITES[key[0]]
        if site.is_weights:
            return bring_pattern(source(key), pair.alignment, start=0).transpose(0, 1)
        written = bring(source(key), pair.alignment, start=0)
        if site.beside is None:
            return written
        return written - base((site.beside, key[1]))

    @abstractmethod
    def _read(self, token_ids: Sequence[int]) -> tuple[Logits, Activations]:
        """The logits and activations of a prompt."""

    @abstractmethod
    def _patched(self, pair: PatchingPair, cell: Cell, written: Written) -> Logits:
        """The logits of the base prompt with one cell patched (`acts_at`, `written_to`)."""


def acts_at(cell: Cell) -> SiteKey:
    """The site and layer at which a cell is written."""
    site = SITES[cell.site]
    return (site.name if site.beside is None else site.patched_at), cell.layer


def written_to(
    tensor: Tensor,
    view: Callable[[Tensor], Float[Tensor, "1 token head size"]],
    written: Written,
    pair: PatchingPair,
    cell: Cell,
) -> Tensor:
    """A copy of a module's tensor with a cell written into it, through `view`."""
    patched = tensor.clone()
    positions = [p for p in cell.group.positions if pair.alignment.sources[p]]
    view(patched)[0, positions, cell.head or 0] = written[positions, cell.head or 0]
    return patched


def _metrics(logits: Logits, pair: PatchingPair) -> list[float]:
    tokens = [*pair.answers.positive, *pair.answers.negative]
    return metrics_of(wide(logits[:, tokens]), pair.answers)
