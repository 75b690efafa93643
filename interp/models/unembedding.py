"""From the last residual stream to logits: final norm, unembedding, soft cap."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import UserError
from interp.models.model import Model
from interp.models.precision import wide, wide_type
from interp.models.sites import Location, layer_count, replaced, watched
from interp.models.weights import whole

_TOLERANCE = {torch.float16: 0.05, torch.bfloat16: 0.3}
"""Tolerance for differences from the model's own logits; float32 and float64 use `_EXACT`."""
_EXACT = 1e-2

PART_TOKENS = 16384
"""Number of rows of the unembedding that are copied at once to compute the logits of all tokens."""


def agree(model: Model, ours: Tensor, theirs: Tensor) -> bool:
    """Whether logits computed in another way equal the model's own, up to rounding."""
    if not theirs.numel():
        return True
    ours, theirs = ours.detach().cpu().double(), theirs.detach().cpu().double()
    tolerance = _TOLERANCE.get(model.hf.dtype, _EXACT)
    # The tolerance grows with logits above 10, as rounding errors do.
    allowed = tolerance * max(1.0, float(theirs.abs().max()) / 10.0)
    # Ignore NaN here, since logits that are not finite are reported with their prompt.
    return not float((ours - theirs).abs().max()) > allowed


@contextmanager
def final_states(model: Model) -> Iterator[list[Tensor]]:
    """Append the final norm's output, (batch, token, size), of each pass in the block to a list."""
    module = model.anatomy.final_norm
    if module is None:
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}, a {model.kind.name}) has no final norm "
            "of its own before an unembedding; perplexity and exact token logits are defined only "
            "for causal language models that have one"
        )
    states: list[Tensor] = []
    place = Location(module, "output", lambda tensor: tensor.unsqueeze(-2), layer_count(model))
    with watched([place], states.append):
        yield states


def unembed(model: Model, states: Float[Tensor, "position size"]) -> Float[Tensor, "position v"]:
    """Next-token logits, in fp32 (fp64 for fp64 models), from final states."""
    logits = wide(model.unembedding(states).to(states.device)) * model.logit_scale
    cap = model.logit_soft_cap
    return logits if cap is None else cap * torch.tanh(logits / cap)


def check_unembedding(
    model: Model, states: Float[Tensor, "batch size"], logits: Float[Tensor, "batch vocabulary"]
) -> None:
    """Raise a UserError if finite logits are not what unembedding the final states gives."""
    finite = logits.isfinite().all(-1)
    if not agree(model, unembed(model, states)[finite], logits[finite]):
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}) does more than unembed its final states, "
            "scale the logits and cap them, so perplexity cannot be computed for it; score only "
            "its answers"
        )


class ExactLogits:
    """Computes a model's logits exactly, for selected tokens alone or for all of them.

    The final norm and the needed rows of the unembedding are copied to fp32 (fp64 for fp64 models),
    because in bf16 a logit near 10 changes in steps of 0.06, which is as large as many effects. The
    rest of the model, such as scaling or capping logits, is unchanged.

    Raises:
        UserError: the final norm or the unembedding is offloaded.
    """

    def __init__(self, model: Model) -> None:
        self._unembedding: Any = model.unembedding
        if self._unembedding is None:
            raise UserError(
                f"transformers does not say which module of {model.name} "
                f"({model.hf.config.model_type}) is its unembedding, which patching reads"
            )
        self._final_norm = model.anatomy.final_norm
        norm = [] if self._final_norm is None else [*self._final_norm.parameters()]
        weights = (*self._unembedding.parameters(), *norm)
        if any(weight.is_meta for weight in weights):
            raise UserError(
                f"the final norm or the unembedding of {model.name} is offloaded, but patching "
                "reads both; use devices that can hold them, or --quantization"
            )
        self._dtype = wide_type(model.hf.dtype)
        self._norm: Any = copy.deepcopy(self._final_norm)
        if self._norm is not None:
            self._norm.to(self._dtype)

    @contextmanager
    def of(self, tokens: Sequence[int] | None) -> Iterator[None]:
        """Within the block, the model returns the logits of these tokens, in order, or of all."""
        count = len(whole(self._unembedding.weight))
        starts = range(0, count, PART_TOKENS)
        parts = [range(start, min(start + PART_TOKENS, count)) for start in starts]
        copied = [] if tokens is None else [self._part(tokens)]

        def norm(residual: Float[Tensor, "*row size"]) -> Float[Tensor, "*row size"]:
            normed: Tensor = self._norm(residual.to(self._dtype))
            return normed

        def unembed(states: Float[Tensor, "row token size"]) -> Float[Tensor, "row token answer"]:
            wide = states.flatten(0, 1).to(self._dtype)
            pieces = []
            for weight, offset in copied or map(self._part, parts):
                logits: Tensor = wide @ weight.T.to(states.device)
                pieces.append(logits if offset is None else logits + offset.to(states.device))
            return torch.cat(pieces, 1).view(*states.shape[:2], -1)

        with ExitStack() as stack:
            stack.enter_context(replaced(self._unembedding, unembed))
            if self._final_norm is not None:
                stack.enter_context(replaced(self._final_norm, norm))
            yield

    def _part(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """The rows of the weights, and of the bias if there is one, for some tokens."""
        chosen = torch.tensor(tokens)
        bias = getattr(self._unembedding, "bias", None)
        weight = self._rows(self._unembedding.weight, chosen)
        return weight, None if bias is None else self._rows(bias, chosen)

    def _rows(self, weight: Tensor, tokens: Int[Tensor, " token"]) -> Tensor:
        return whole(weight)[tokens.to(weight.device)].to(self._dtype)
