"""The metric: the logit difference of the two contrasted options, in fp32."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.errors import UserError
from interp.models.hooks import replaced
from interp.models.model import Model
from interp.scoring.answer_tokens import ContrastTokens

NO_GAP = 1e-3
"""Logit differences of the two prompts that are closer than this, in logits, leave no share to
recover: the normalized effect is undefined."""


class Head:
    """What makes the model give the logits of the answers alone, exactly.

    Final norm and the needed rows of the unembedding are copies in fp32 (fp64 where the model is):
    in bf16 a logit of 10 moves in steps of 0.06, which is as large as many effects. What the model
    does with them besides, such as scaling or capping logits, stays its own.
    """

    def __init__(self, model: Model) -> None:
        self._unembedding: Any = model.unembedding
        self._final_norm = model.hf.get_submodule(model.architecture.final_norm)
        weights = (*self._unembedding.parameters(), *self._final_norm.parameters())
        if any(weight.is_meta for weight in weights):
            raise UserError(
                f"the end of {model.name} is offloaded, but patching reads its final norm and "
                "unembedding; give devices that hold them, or --quantization"
            )
        self._dtype = torch.promote_types(model.hf.dtype, torch.float32)
        self._norm: nn.Module = copy.deepcopy(self._final_norm).to(self._dtype)

    @contextmanager
    def reading(self, answers: ContrastTokens) -> Iterator[None]:
        """Within the block the model's logits are those of the positive, then negative tokens."""
        tokens = torch.tensor([*answers.positive, *answers.negative])
        weight = self._rows(self._unembedding.weight, tokens)
        bias = getattr(self._unembedding, "bias", None)
        offset = None if bias is None else self._rows(bias, tokens)

        def norm(residual: Float[Tensor, "row token size"]) -> Float[Tensor, "row token size"]:
            normed: Tensor = self._norm(residual.to(self._dtype))
            return normed

        def unembed(states: Float[Tensor, "row token size"]) -> Float[Tensor, "row token answer"]:
            logits: Tensor = states.flatten(0, 1) @ weight.T.to(states.device)
            if offset is not None:
                logits = logits + offset.to(states.device)
            return logits.view(*states.shape[:2], -1)

        with replaced(self._final_norm, norm), replaced(self._unembedding, unembed):
            yield

    def _rows(self, weight: Tensor, tokens: Int[Tensor, " token"]) -> Tensor:
        return weight[tokens.to(weight.device)].to(self._dtype)


def logit_difference(logits: Float[Tensor, "row token"], positive: int) -> Float[Tensor, " row"]:
    """Log-sum-exp of the first `positive` logits minus that of the others, in logits.

    With one form an answer this is the plain difference of two logits; with several it is the
    logarithm of c+ / c-, the ratio of the answers' probabilities.
    """
    return logits[:, :positive].logsumexp(1) - logits[:, positive:].logsumexp(1)


def normalized(effect: float, *, base: float, source: float) -> float:
    """The share of the way from the base prompt's metric to the source prompt's; NaN without one.

    0 is no effect, 1 the metric of the prompt that the activations come from.
    """
    gap = source - base
    # Adding zero makes of minus zero, no effect against a negative gap, a plain one.
    return effect / gap + 0.0 if abs(gap) >= NO_GAP else math.nan


def prefers(metric: float, positive: bool) -> bool:
    """Whether a metric prefers the positive answer, or the negative one."""
    return metric > 0 if positive else metric < 0
