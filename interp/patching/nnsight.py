"""Patching through nnsight: traces of the unmodified model, with many cells per trace.

Importing nnsight adds a method to every Python object and replaces `Tensor.backward`, so only this
module imports it. With `remote`, a model from the hub runs on NDIF's servers, and its local weights
are not used.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from interp.choices import SITES
from interp.errors import UserError
from interp.models.model import Model
from interp.models.sites import Location, locate
from interp.patching.cells import Cell, PatchingPair
from interp.patching.library import Activations, LibraryBackend, Logits, acts_at, write
from interp.patching.passes import SiteKey, Written

try:
    from nnsight.modeling.transformers import TransformersModel
except ImportError as error:
    raise UserError(
        "the backend nnsight is not installed; run pip install 'interp[nnsight]'"
    ) from error


class NnsightBackend(LibraryBackend):
    """A backend that runs cells in nnsight's traces."""

    rows = 32

    def __init__(self, model: Model, *, remote: bool = False) -> None:
        if remote and model.source.get("kind") != "hub":
            raise UserError(
                f"remote execution requires a model from the hub, but {model.name} is not one; "
                "omit remote, or use a hub name"
            )
        super().__init__(model)
        self.scale = model.residual_scale
        self._remote = {"remote": True} if remote else {}
        self._nnsight: Any = (
            TransformersModel(model.source["name"])
            if remote
            else TransformersModel(model.hf, tokenizer=model.tokenizer)
        )
        self._paths = {module: path for path, module in model.hf.named_modules()}

    def _read(self, token_ids: Sequence[int]) -> tuple[Logits, Activations]:
        def activation(key: SiteKey) -> Tensor:
            location, module = self._located(key)
            with self._nnsight.trace(self._inputs(token_ids), **self._remote):
                value = module.input if location.end == "input" else _first(module.output)
                value = value.save()
            return location.view(value)[0]

        with self._nnsight.trace(self._inputs(token_ids), **self._remote):
            logits = self._nnsight.output.logits[:, -1].save()
        return logits, activation

    def _located(self, key: SiteKey) -> tuple[Location, Any]:
        """A site's location, and nnsight's module at that location."""
        if SITES[key[0]].is_weights:
            raise UserError(
                "the backend nnsight has no site pattern: attention weights pass through no "
                "module; use --backend native or transformer-lens"
            )
        location = locate(self._model, *key)
        return location, self._nnsight.get(self._paths[location.module])

    def _patched(self, pair: PatchingPair, cells: Sequence[Cell], written: Written) -> Logits:
        location, module = self._located(acts_at(cells[0]))
        reads_input = location.end == "input"
        inputs = self._inputs(pair.base.token_ids, rows=len(cells))
        with self._nnsight.trace(inputs, **self._remote):
            if reads_input:
                module.input = write(module.input, location.view, written, pair, cells)
            else:
                output = module.output
                patched = write(_first(output), location.view, written, pair, cells)
                module.output = (patched, *output[1:]) if isinstance(output, tuple) else patched
            logits = self._nnsight.output.logits[:, -1].save()
        kept: Tensor = logits
        return kept

    def _inputs(self, token_ids: Sequence[int], rows: int = 1) -> dict[str, Tensor]:
        ids = torch.tensor([token_ids], device=self._model.device).expand(rows, -1)
        return {"input_ids": ids}


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output
