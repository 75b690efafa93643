"""Patching through TransformerLens on a copy of the model, with one forward pass per cell.

TransformerLens rewrites a model in place and computes its attention explicitly (eager). Its
tokenizer is a copy, saved to a temporary folder and loaded again.
"""

import copy
import tempfile
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoTokenizer

from interp.choices import SITES
from interp.errors import UserError
from interp.models.model import Model
from interp.models.precision import wide
from interp.patching.alignment import bring, bring_pattern
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    acts_at,
    has_counterpart,
)
from interp.patching.passes import SiteKey, Written, metrics_of
from interp.reading.tokens import TokenizedPrompt

try:
    from transformer_lens import ActivationCache
    from transformer_lens.model_bridge import TransformerBridge
except ImportError as error:
    raise UserError(
        "the backend transformer-lens is not installed; run pip install 'interp[transformer-lens]'"
    ) from error


class TransformerLensBackend:
    """A backend that runs cells with TransformerLens's model and hooks.

    Its resid_mid hook reaches only the MLP, so resid_mid is written to attn_out.

    Raises:
        UserError: TransformerLens does not support the model, for instance its architecture.
    """

    def __init__(self, model: Model) -> None:
        model.check_whole("a library's backend")
        self._model = model
        copied = copy.deepcopy(model.hf)
        # TransformerLens looks up the class name, which a model that was never saved lacks.
        copied.config.architectures = copied.config.architectures or [type(copied).__name__]
        with tempfile.TemporaryDirectory() as folder:
            model.tokenizer.save_pretrained(folder)
            try:
                self._bridge: Any = TransformerBridge.boot_transformers(
                    model.name,
                    hf_model=copied,
                    tokenizer=AutoTokenizer.from_pretrained(folder),
                    device=str(model.device),
                )
            except ValueError as error:
                raise UserError(
                    f"TransformerLens does not support {model.name} "
                    f"({', '.join(copied.config.architectures)}): {str(error)[:60]}...; use "
                    "--backend native or nnsight"
                ) from error

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell."""
        metrics = [UNDEFINED] * len(cells)
        with self._model.measuring():
            base_logits, base = self._bridge.run_with_cache(self._ids(pair.base))
            source_logits, source = self._bridge.run_with_cache(self._ids(pair.source))
            for key in sorted({(cell.site, cell.layer) for cell in cells}):
                written = _written(pair, key, base, source)
                for index, cell in enumerate(cells):
                    if (cell.site, cell.layer) == key and has_counterpart(pair, cell):
                        metrics[index] = _metric(self._patched(pair, cell, written), pair)
        base_metric, source_metric = (_metric(each, pair) for each in (base_logits, source_logits))
        return PatchedMetrics(base_metric, source_metric, tuple(metrics))

    def _patched(
        self, pair: PatchingPair, cell: Cell, written: Written
    ) -> Float[Tensor, "1 token vocabulary"]:
        site, layer = acts_at(cell)
        weights = SITES[site].is_weights
        positions = [p for p in cell.group.positions if pair.alignment.sources[p]]

        def edit(tensor: Tensor, hook: Any) -> Tensor:
            patched = tensor.clone()
            view = patched.transpose(1, 2) if weights else _by_head(patched)
            view[0, positions, cell.head or 0] = written[positions, cell.head or 0]
            return patched

        logits: Tensor = self._bridge.run_with_hooks(
            self._ids(pair.base), fwd_hooks=[(hook_name(site, layer), edit)]
        )
        return logits

    def _ids(self, prompt: TokenizedPrompt) -> Tensor:
        return torch.tensor([prompt.token_ids], device=self._model.device)


def _written(
    pair: PatchingPair, key: SiteKey, base: ActivationCache, source: ActivationCache
) -> Written:
    """The activations that a patch writes; for attention weights, (query, head, key)."""
    site, activations = SITES[key[0]], source[hook_name(*key)]
    if site.is_weights:
        return bring_pattern(activations[0], pair.alignment, start=0).transpose(0, 1)
    written = bring(_by_head(activations)[0], pair.alignment, start=0)
    if site.beside is None:
        return written
    return written - _by_head(base[hook_name(site.beside, key[1])])[0]


def _metric(logits: Float[Tensor, "1 token vocabulary"], pair: PatchingPair) -> float:
    tokens = [*pair.answers.positive, *pair.answers.negative]
    return metrics_of(wide(logits[:, -1, tokens]), pair.answers)[0]


def hook_name(site: str, layer: int) -> str:
    """TransformerLens's name for a site in a layer."""
    within = "" if SITES[site].heads is None else "attn."
    return f"blocks.{layer}.{within}hook_{site}"


def _by_head(tensor: Tensor) -> Float[Tensor, "row token head size"]:
    return tensor if tensor.dim() == 4 else tensor[:, :, None]
