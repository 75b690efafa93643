"""The end of a model as a linear map: the unembedding with the final norm's weight folded in.

A final norm gives g * (x - m) / s + b: g is its weight, s the root mean square of x - m, and m the
mean of x in a layer norm and 0 in an RMS norm. A token's logit is then its folded row times the
final stream, divided by s, plus a constant. g and m are found by asking the norm, because families
store g in different ways (Gemma as g - 1).
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from accelerate.hooks import remove_hook_from_module
from jaxtyping import Float
from torch import Tensor

from interp.errors import ModelError, UserError
from interp.models.model import Model
from interp.models.sites import layer_count, locate
from interp.models.weights import whole

_SIZE = 1000.0
"""Size of the numbers with which a norm is asked, beside which its epsilon is nothing."""

_EXACT = 1e-3
"""Largest relative difference of a norm's output from the formula."""


class FinalNorm:
    """The weight of a model's final norm, and the scale by which it divides.

    Raises:
        UserError: the norm is offloaded, or computes something else.
    """

    def __init__(self, model: Model) -> None:
        norm = model.anatomy.final_norm
        self.dtype = torch.promote_types(model.hf.dtype, torch.float32)
        self._norm: Any = None
        if norm is None:
            return
        if any(weight.is_meta for weight in norm.parameters()):
            raise UserError(
                f"the final norm of {model.name} is offloaded, but a lens reads its weight; use "
                "devices that can hold it, or --quantization"
            )
        self._norm = copy.deepcopy(norm)
        remove_hook_from_module(self._norm, recurse=True)  # accelerate's, which moves inputs
        self._norm.to("cpu", self.dtype)
        width = len(next(iter(norm.parameters()), torch.empty(model.text_config.hidden_size)))
        ones = torch.full((width,), _SIZE, dtype=self.dtype)
        self._centres = bool(self._odd(ones).abs().max() < _EXACT)
        signs = ones * (-1.0) ** torch.arange(width)
        self._weight = self._odd(signs) * _rms(self._centred(signs)) / self._centred(signs)
        self._check(model, width)

    def folded(self, rows: Float[Tensor, "word width"]) -> Float[Tensor, "word width"]:
        """Rows of the unembedding, as they act on the stream before the final norm."""
        return rows if self._norm is None else self._centred(rows * self._weight)

    def scale(self, streams: Float[Tensor, "*place width"]) -> Float[Tensor, "*place"]:
        """What the norm divides each stream by; 1 if there is no norm."""
        if self._norm is None:
            return torch.ones(streams.shape[:-1], dtype=self.dtype)
        expected = self._centred(streams.to("cpu", self.dtype)) * self._weight
        scale: Tensor = expected.norm(dim=-1) / self._odd(streams.to("cpu", self.dtype)).norm(
            dim=-1
        )
        return scale

    @torch.no_grad()
    def _odd(self, streams: Float[Tensor, "*place width"]) -> Float[Tensor, "*place width"]:
        """The norm's output without its bias."""
        odd: Tensor = (self._norm(streams) - self._norm(-streams)) / 2
        return odd

    def _centred(self, streams: Float[Tensor, "*place width"]) -> Float[Tensor, "*place width"]:
        return streams - streams.mean(-1, keepdim=True) if self._centres else streams

    def _check(self, model: Model, width: int) -> None:
        probe = _SIZE * torch.randn(width, generator=torch.Generator().manual_seed(0))
        probe = self._centred(probe.to(self.dtype) + _SIZE)
        found, expected = self._odd(probe), self._weight * probe / _rms(probe)
        if not float((found - expected).norm()) <= _EXACT * float(expected.norm()):
            raise ModelError(
                f"the final norm of {model.name} ({model.hf.config.model_type}) is neither a layer "
                "norm nor an RMS norm, so a lens cannot fold its weight into the unembedding"
            )


def _rms(stream: Float[Tensor, " width"]) -> Float[Tensor, ""]:
    return stream.square().mean().sqrt()


@torch.no_grad()
def unembedding_rows(model: Model, token_ids: Sequence[int]) -> Float[Tensor, "word width"]:
    """Rows U[w] of tokens, with the final norm's weight folded in, on the CPU.

    In fp32 (fp64 for fp64 models). A token's logit is its row times the final stream (the final
    norm's input), divided by `FinalNorm.scale`, plus a constant if norm or unembedding have a bias,
    before any soft cap.

    Raises:
        UserError: the model has no unembedding of its stream, or it is offloaded.
    """
    check_lens(model)
    norm = FinalNorm(model)
    unembedding: Any = model.unembedding
    weight = whole(unembedding.weight)
    if weight.is_meta:
        raise UserError(
            f"the unembedding of {model.name} is offloaded, but a lens reads its rows; use devices "
            "that can hold it, or --quantization"
        )
    chosen = weight[torch.tensor(token_ids, device=weight.device)].to("cpu", norm.dtype)
    return norm.folded(chosen * model.logit_scale)


def check_lens(model: Model) -> None:
    """Check that a model has what a lens reads: a stream that an unembedding turns into words.

    Raises:
        UserError: the model is not a causal language model, its unembedding reads something else
            than the stream, or the weights are spread over processes or not differentiable.
    """
    if not model.architecture.causal or model.kind.reads_ahead:
        raise UserError(
            f"{model.name} is a {model.kind.name}; a lens reads which words a causal language "
            "model is going to say. Use patch, which takes other models too"
        )
    model.check_whole("a lens")
    model.check_differentiable("a lens")
    place = locate(model, "resid_post", layer_count(model) - 1)
    weight = getattr(model.unembedding, "weight", None)
    width = model.text_config.hidden_size
    if place.end == "weights" or weight is None or weight.dim() != 2 or weight.shape[1] != width:
        raise ModelError(
            f"the unembedding of {model.name} ({model.hf.config.model_type}) does not read its "
            "residual stream directly, so no direction of the stream stands for a word"
        )
