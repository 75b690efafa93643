"""Patching by TransformerLens, on a copy of the model: one forward pass of the prompt per cell.

TransformerLens rewrites a model in place and computes its attention openly (eager). It reads its
tokenizer from a saved folder.
"""

import copy
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoTokenizer

from interp.choices import SITES
from interp.errors import UserError
from interp.models.model import Model
from interp.patching.alignment import bring, bring_pattern
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    has_counterpart,
)
from interp.patching.passes import logit_difference
from interp.reading.tokens import TokenizedPrompt

try:
    from transformer_lens.model_bridge import TransformerBridge
except ImportError as error:
    raise UserError(
        "the backend transformer-lens is not installed; install it by "
        "pip install 'interp[transformer-lens]'"
    ) from error


class TransformerLensBackend:
    """A backend that runs cells by TransformerLens's model and hooks.

    Raises:
        UserError: TransformerLens does not take the model, for instance an unknown architecture.
    """

    def __init__(self, model: Model) -> None:
        self._device = model.device
        copied = copy.deepcopy(model.hf)
        # A model that was never saved lacks the class name, which TransformerLens looks up.
        copied.config.architectures = copied.config.architectures or [type(copied).__name__]
        with tempfile.TemporaryDirectory() as folder:
            model.tokenizer.save_pretrained(folder)
            try:
                # TransformerLens reads the tokenizer from its folder again.
                self._bridge: Any = TransformerBridge.boot_transformers(
                    model.name,
                    hf_model=copied,
                    tokenizer=AutoTokenizer.from_pretrained(folder),
                    device=str(model.device),
                )
            except ValueError as error:
                raise UserError(
                    f"TransformerLens does not take {model.name} "
                    f"({', '.join(copied.config.architectures)}): {str(error)[:60]}...; give "
                    "--backend native or nnsight"
                ) from error

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell."""
        base_metric, base = self._cached(pair.base, pair)
        source_metric, source = self._cached(pair.source, pair)
        metrics = [
            self._patched(pair, cell, base, source) if has_counterpart(pair, cell) else UNDEFINED
            for cell in cells
        ]
        return PatchedMetrics(base_metric, source_metric, tuple(metrics))

    def _cached(self, prompt: TokenizedPrompt, pair: PatchingPair) -> tuple[float, Any]:
        """The metric of a prompt, and its activations by hook name."""
        logits, cache = self._bridge.run_with_cache(self._ids(prompt.token_ids))
        return _metric_of(logits, pair), cache

    def _patched(self, pair: PatchingPair, cell: Cell, base: Any, source: Any) -> float:
        """The metric under one cell, from the cached activations of both prompts."""
        site = SITES[cell.site]
        activations = source[hook_name(cell.site, cell.layer)][0]
        if site.is_weights:
            written = bring_pattern(activations, pair.alignment, start=0)
        else:
            written = bring(_with_heads(activations), pair.alignment, start=0)
        acts_at = site.name
        if site.beside is not None:
            # TransformerLens's hook of this name reaches only the MLP, not the residual stream.
            written = written - base[hook_name(site.beside, cell.layer)][0][:, None]
            acts_at = site.patched_at
        write = partial(_write, cell=cell, pair=pair, written=written)
        logits = self._bridge.run_with_hooks(
            self._ids(pair.base.token_ids),
            fwd_hooks=[(hook_name(acts_at, cell.layer), write)],
        )
        return _metric_of(logits, pair)

    def _ids(self, token_ids: Sequence[int]) -> Tensor:
        return torch.tensor([token_ids], device=self._device)


def hook_name(site: str, layer: int) -> str:
    """TransformerLens's name of a site of a layer."""
    within = "" if SITES[site].heads is None else "attn."
    return f"blocks.{layer}.{within}hook_{site}"


def _metric_of(logits: Float[Tensor, "1 token vocabulary"], pair: PatchingPair) -> float:
    tokens = [*pair.answers.positive, *pair.answers.negative]
    return float(logit_difference(logits[:, -1, tokens].float(), len(pair.answers.positive)))


def _with_heads(tensor: Tensor) -> Float[Tensor, "token head size"]:
    return tensor if tensor.dim() == 3 else tensor[:, None]


def _write(tensor: Tensor, hook: Any, *, cell: Cell, pair: PatchingPair, written: Tensor) -> Tensor:
    """The tensor of a hook after a cell is written into it."""
    positions = [p for p in cell.group.positions if pair.alignment.sources[p]]
    patched = tensor.clone()
    if SITES[cell.site].is_weights:
        patched[0, cell.head, positions] = written[cell.head, positions]
    else:
        _with_heads(patched[0])[positions, cell.head or 0] = written[positions, cell.head or 0]
    return patched
