"""Estimates of every cell's effect, from the metric's gradient in a few passes.

The base prompt is run again with autograd, and the metric is differentiated with respect to the
activations of all sites simultaneously: attribution patching (Nanda 2023). The integrated estimate
uses the mean of the gradients at several points between the prompts' embeddings (as EAP-IG does;
Hanna, Pezzelle and Belinkov 2024). A cell's estimate is the sum, over its tokens, of the gradient
times the change from the base activation to the written one.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.choices import INTEGRATION_STEPS, SITES, PatchEstimate
from interp.errors import UserError
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import layers_read, locate
from interp.models.unembedding import ExactLogits
from interp.patching.alignment import bring
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    has_counterpart,
    patched_positions,
)
from interp.patching.checks import check_causal
from interp.patching.passes import (
    PairPasses,
    SiteKey,
    answers_alone,
    embed,
    logit_difference,
    run_pair,
    run_pass,
)


class Estimator:
    """Estimates the metric under patches: at the base prompt, or over the middles of `steps`."""

    def __init__(
        self, model: Model, *, estimate: PatchEstimate, steps: int = INTEGRATION_STEPS
    ) -> None:
        check_causal(model, f"the estimate {estimate!r}")
        model.check_differentiable(f"the estimate {estimate!r}")
        self._model = model
        self._layers = layers_read(model)
        self._logits = ExactLogits(model)
        self._points = [0.0] if estimate == "gradient" else middles(steps)

    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The estimated metric of a pair under each cell."""
        keys = sorted({(cell.site, cell.layer) for cell in cells})
        for site, layer in keys:
            if locate(self._model, site, layer).in_turn:
                raise UserError(
                    f"the site {site} in layer {layer} of {self._model.name} has the outputs of "
                    "modules that run one after another, whose effects a gradient cannot tell "
                    "together; omit the site, or patch it exactly (without estimate)"
                )
        with self._model.measuring(), answers_alone(self._logits, pair.answers):
            with torch.no_grad():
                passes = run_pair(self._model, pair, keys)
                base, source = passes.metrics
            gradients = self._mean_gradients(passes, keys)
            with torch.no_grad():
                changes = {key: self._changes(passes, key, gradients[key]) for key in keys}
        metrics = []
        for cell in cells:
            positions = patched_positions(pair, cell, layers=self._layers)
            rows = [position - pair.shared for position in positions]
            change = changes[cell.site, cell.layer][rows, cell.head or 0].sum()
            metrics.append(base + float(change) if has_counterpart(pair, cell) else UNDEFINED)
        return PatchedMetrics(base, source, tuple(metrics))

    @torch.enable_grad()
    def _mean_gradients(self, passes: PairPasses, keys: Sequence[SiteKey]) -> dict[SiteKey, Tensor]:
        pair, totals = passes.pair, dict[SiteKey, Tensor]()
        start, written = embeddings_of(self._model, pair)
        for point in self._points:
            run = run_pass(
                self._model,
                pair.base,
                torch.lerp(start, written, point)[:, pair.shared :].requires_grad_(),
                keys,
                start=pair.shared,
                past=passes.prefix,
                answers=pair.answers,
            )
            metric = logit_difference(run.logits, len(pair.answers.positive))
            gradients = torch.autograd.grad(metric.sum(), [run.values[key] for key in keys])
            for key, gradient in zip(keys, gradients, strict=True):
                totals[key] = totals.get(key, 0) + gradient / len(self._points)
        return totals

    def _changes(
        self, passes: PairPasses, key: SiteKey, gradient: Tensor
    ) -> Float[Tensor, "token head"]:
        """The estimated change in the metric for each token of each head, if patched alone."""
        if SITES[key[0]].is_weights:
            base, written = passes.patterns(key[1])
            return torch.einsum("hqk,hqk->qh", wide(gradient[0]), wide(written - base))
        view = locate(self._model, *key).view
        base, written = passes.activations(key, view)
        return (wide(view(gradient)[0]) * wide(written - base)).sum(-1)


def middles(steps: int) -> list[float]:
    """The midpoints of equal intervals between 0 and 1."""
    return [(step + 0.5) / steps for step in range(steps)]


@torch.no_grad()
def embeddings_of(model: Model, pair: PatchingPair) -> tuple[Tensor, Tensor]:
    """The base prompt's embeddings: unchanged, and replaced by those of the counterparts."""
    base, source = (embed(model, p.token_ids) for p in (pair.base, pair.source))
    written = bring(source[0][:, None], pair.alignment, start=0)[None, :, 0]
    paired = torch.tensor([bool(tokens) for tokens in pair.alignment.sources])
    return base, torch.where(paired.to(base.device)[None, :, None], written, base)
