"""Patching by TransformerLens, on a copy of the model: one forward pass of the prompt a cell.

TransformerLens rewrites a model in place and computes its attention openly (eager). It reads its
tokenizer from a saved folder.
"""

import copy
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoTokenizer

from interp.errors import UserError
from interp.models.model import Model
from interp.patching.cells import Cell, PatchedMetrics, PatchingPair, has_counterpart
from interp.patching.metric import logit_difference
from interp.patching.sites import HEAD_SITES
from interp.patching.transfer import bring, bring_pattern

try:
    from transformer_lens.model_bridge import TransformerBridge
except ImportError as error:
    raise UserError(
        "the backend transformer-lens is not installed; install it by "
        "pip install 'interp[transformer-lens]'"
    ) from error


class TransformerLensBackend:
    """TransformerLens's model and hooks, behind the same cells."""

    def __init__(self, model: Model) -> None:
        self._device = model.device
        with tempfile.TemporaryDirectory() as folder:
            model.tokenizer.save_pretrained(folder)
            # TransformerLens reads the tokenizer from its folder once more.
            self._bridge: Any = TransformerBridge.boot_transformers(
                model.name,
                hf_model=copy.deepcopy(model.hf),
                tokenizer=AutoTokenizer.from_pretrained(folder),
                device=str(model.device),
            )

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell."""
        names = sorted({_hook_name(cell) for cell in cells})
        logits, cache = self._bridge.run_with_cache(
            self._ids(pair.source.token_ids), names_filter=names
        )
        metrics = []
        for cell in cells:
            if not has_counterpart(pair, cell):
                metrics.append(float("nan"))
                continue
            name = _hook_name(cell)
            write = partial(_write, cell=cell, pair=pair, source=cache[name][0])
            metrics.append(self._metric(pair, [(name, write)]))
        return PatchedMetrics(
            self._metric(pair, []), _metric_of(logits, pair), tuple(metrics)
        )

    def _metric(self, pair: PatchingPair, hooks: list[tuple[str, Callable[..., Tensor]]]) -> float:
        logits = self._bridge.run_with_hooks(self._ids(pair.base.token_ids), fwd_hooks=hooks)
        return _metric_of(logits, pair)

    def _ids(self, token_ids: Sequence[int]) -> Tensor:
        return torch.tensor([token_ids], device=self._device)


def _hook_name(cell: Cell) -> str:
    within = "attn." if cell.site in HEAD_SITES else ""
    return f"blocks.{cell.layer}.{within}hook_{cell.site}"


def _metric_of(logits: Float[Tensor, "1 token vocabulary"], pair: PatchingPair) -> float:
    tokens = [*pair.answers.positive, *pair.answers.negative]
    return float(logit_difference(logits[:, -1, tokens].float(), len(pair.answers.positive)))


def _write(tensor: Tensor, hook: Any, *, cell: Cell, pair: PatchingPair, source: Tensor) -> Tensor:
    """The tensor of a hook with a cell's activations from the source prompt."""
    positions = [p for p in cell.group.positions if pair.alignment.sources[p]]
    patched = tensor.clone()
    if cell.site == "pattern":
        written = bring_pattern(source, pair.alignment, start=0)
        patched[0, cell.head, positions] = written[cell.head, positions]
    elif cell.head is None:
        patched[0, positions] = bring(source[:, None], pair.alignment, start=0)[positions, 0]
    else:
        written = bring(source, pair.alignment, start=0)
        patched[0, positions, cell.head] = written[positions, cell.head]
    return patched
