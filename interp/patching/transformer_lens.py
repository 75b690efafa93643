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
from interp.patching.cells import Cell, PatchingPair
from interp.patching.library import Activations, LibraryBackend, Logits, acts_at, written_to
from interp.patching.passes import SiteKey, Written

try:
    from transformer_lens.model_bridge import TransformerBridge
except ImportError as error:
    raise UserError(
        "the backend transformer-lens is not installed; run pip install 'interp[transformer-lens]'"
    ) from error


class TransformerLensBackend(LibraryBackend):
    """A backend that runs cells with TransformerLens's model and hooks.

    Its resid_mid hook reaches only the MLP, so resid_mid is written to attn_out.

    Raises:
        UserError: TransformerLens does not support the model, for instance its architecture.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
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

    def _read(self, token_ids: Sequence[int]) -> tuple[Logits, Activations]:
        logits, cache = self._bridge.run_with_cache(self._ids(token_ids))

        def activation(key: SiteKey) -> Tensor:
            values: Tensor = cache[hook_name(*key)]
            return values[0] if SITES[key[0]].is_weights else _by_head(values)[0]

        return logits[:, -1], activation

    def _patched(self, pair: PatchingPair, cell: Cell, written: Written) -> Logits:
        site, layer = acts_at(cell)
        view = _by_query if SITES[site].is_weights else _by_head

        def edit(tensor: Tensor, hook: Any) -> Tensor:
            return written_to(tensor, view, written, pair, cell)

        logits: Tensor = self._bridge.run_with_hooks(
            self._ids(pair.base.token_ids), fwd_hooks=[(hook_name(site, layer), edit)]
        )
        return logits[:, -1]

    def _ids(self, token_ids: Sequence[int]) -> Tensor:
        return torch.tensor([token_ids], device=self._model.device)


def hook_name(site: str, layer: int) -> str:
    """TransformerLens's name for a site in a layer."""
    within = "" if SITES[site].heads is None else "attn."
    return f"blocks.{layer}.{within}hook_{site}"


def _by_head(tensor: Tensor) -> Float[Tensor, "row token head size"]:
    return tensor if tensor.dim() == 4 else tensor[:, :, None]


def _by_query(weights: Float[Tensor, "row head query key"]) -> Tensor:
    return weights.transpose(1, 2)
