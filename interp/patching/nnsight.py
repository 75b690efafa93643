"""Patching by nnsight: its traces on the unmodified model, many cells per trace.

Importing nnsight adds a method to every Python object and replaces `Tensor.backward`, so only this
module imports it. Each trace runs the whole prompt. With `remote`, a model from the hub runs on
NDIF's servers, and its weights here are not used.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from interp.choices import SITES
from interp.errors import UserError
from interp.models.model import Model
from interp.models.sites import Location, locate, residual_scale
from interp.patching.alignment import bring
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    has_counterpart,
)
from interp.patching.passes import logit_difference

try:
    from nnsight.modeling.transformers import TransformersModel
except ImportError as error:
    raise UserError(
        "the backend nnsight is not installed; install it by pip install 'interp[nnsight]'"
    ) from error

TRACE_ROWS = 32
"""Most cells in one trace."""


class NnsightBackend:
    """A backend that runs cells as nnsight's traces."""

    def __init__(self, model: Model, *, remote: bool = False) -> None:
        if remote and model.source.get("kind") != "hub":
            raise UserError(
                f"{model.name} is not a model of the hub, which remote execution needs; "
                "omit remote, or give a hub name"
            )
        self._model = model
        self._remote = {"remote": True} if remote else {}
        self._nnsight: Any = (
            TransformersModel(model.source["name"])
            if remote
            else TransformersModel(model.hf, tokenizer=model.tokenizer)
        )
        self._paths = {module: path for path, module in model.hf.named_modules()}

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell.

        Raises:
            UserError: a cell is an attention pattern, which no module takes or returns.
        """
        if any(SITES[cell.site].is_weights for cell in cells):
            raise UserError(
                "the backend nnsight has no site pattern: attention weights pass through no "
                "module; use --backend native or transformer-lens"
            )
        with self._model.measuring():
            base, source = (
                self._metrics(pair, self._logits(prompt.token_ids))[0]
                for prompt in (pair.base, pair.source)
            )
            metrics = [UNDEFINED] * len(cells)
            for key in sorted({(cell.site, cell.layer) for cell in cells}):
                for index, metric in self._run_site(pair, *key, cells):
                    metrics[index] = metric
        return PatchedMetrics(base, source, tuple(metrics))

    def _run_site(
        self, pair: PatchingPair, site: str, layer: int, cells: Sequence[Cell]
    ) -> Iterator[tuple[int, float]]:
        """The index and metric of each cell of a site and layer."""
        location = locate(self._model, site, layer)
        source = location.view(self._activation(location, pair.source.token_ids))[0]
        written = bring(source, pair.alignment, start=0)
        beside = SITES[site].beside
        if beside is not None:
            before = self._activation(locate(self._model, beside, layer), pair.base.token_ids)
            written = (written - before[0][:, None]) / residual_scale(self._model)
            location = locate(self._model, SITES[site].patched_at, layer)
        indices = [
            index
            for index, cell in enumerate(cells)
            if (cell.site, cell.layer) == (site, layer) and has_counterpart(pair, cell)
        ]
        for first in range(0, len(indices), TRACE_ROWS):
            chunk = indices[first : first + TRACE_ROWS]
            logits = self._patched(location, pair, written, [cells[index] for index in chunk])
            yield from zip(chunk, self._metrics(pair, logits), strict=True)

    def _activation(
        self, location: Location, token_ids: Sequence[int]
    ) -> Float[Tensor, "1 token width"]:
        module = self._nnsight.get(self._paths[location.module])
        with self._nnsight.trace(self._inputs(token_ids), **self._remote):
            value = module.input if location.end == "input" else _first(module.output)
            value = value.save()
        kept: Tensor = value
        return kept

    def _logits(self, token_ids: Sequence[int]) -> Float[Tensor, "1 vocabulary"]:
        with self._nnsight.trace(self._inputs(token_ids), **self._remote):
            logits = self._nnsight.output.logits[:, -1].save()
        kept: Tensor = logits
        return kept

    def _patched(
        self, location: Location, pair: PatchingPair, written: Tensor, cells: Sequence[Cell]
    ) -> Float[Tensor, "row vocabulary"]:
        """The last logits of the base prompt, one row per cell, each under its patch."""
        module = self._nnsight.get(self._paths[location.module])
        reads_input = location.end == "input"
        with self._nnsight.trace(
            self._inputs(pair.base.token_ids, rows=len(cells)), **self._remote
        ):
            if reads_input:
                module.input = _write(module.input, location, pair, written, cells)
            else:
                output = module.output
                patched = _write(_first(output), location, pair, written, cells)
                module.output = (patched, *output[1:]) if isinstance(output, tuple) else patched
            logits = self._nnsight.output.logits[:, -1].save()
        kept: Tensor = logits
        return kept

    def _inputs(self, token_ids: Sequence[int], rows: int = 1) -> dict[str, Tensor]:
        ids = torch.tensor([token_ids], device=self._model.device).expand(rows, -1)
        return {"input_ids": ids}

    def _metrics(self, pair: PatchingPair, logits: Float[Tensor, "row vocabulary"]) -> list[float]:
        tokens = [*pair.answers.positive, *pair.answers.negative]
        difference = logit_difference(logits[:, tokens].float(), len(pair.answers.positive))
        return [float(metric) for metric in difference.tolist()]


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def _write(
    tensor: Tensor,
    location: Location,
    pair: PatchingPair,
    written: Tensor,
    cells: Sequence[Cell],
) -> Tensor:
    """The tensor of a module after each row's cell is written into it."""
    patched = tensor.clone()
    view = location.view(patched)
    for row, cell in enumerate(cells):
        positions = [p for p in cell.group.positions if pair.alignment.sources[p]]
        view[row, positions, cell.head or 0] = written[positions, cell.head or 0]
    return patched
