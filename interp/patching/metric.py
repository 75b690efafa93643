"""The metric: the logit difference of the positive and the negative answer, in fp32."""

import copy
import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.errors import UserError
from interp.models.model import Model
from interp.scoring.answer_tokens import AnswerTokens

NO_GAP = 1e-3
"""Logit differences of the two prompts that are closer than this, in logits, leave no share to
recover: the normalized effect is undefined."""

_TOLERANCE = {torch.float16: 0.05, torch.bfloat16: 0.3}
"""How far the model's own logits may be from ours, in logits; `_EXACT` for wider types."""
_EXACT = 1e-2


class Head:
    """From the residual stream to the metric: final norm, needed rows of the unembedding, soft cap.

    Norm and rows are copies in fp32 (fp64 where the model is): in bf16 a logit of 10 moves in steps
    of 0.06, which is as large as many effects.
    """

    def __init__(self, model: Model) -> None:
        unembedding: Any = model.unembedding
        final_norm = model.hf.get_submodule(model.architecture.final_norm)
        if any(weight.is_meta for weight in (*unembedding.parameters(), *final_norm.parameters())):
            raise UserError(
                f"the end of {model.name} is offloaded, but patching reads its final norm and "
                "unembedding; give devices that hold them, or --quantization"
            )
        self._dtype = torch.promote_types(model.hf.dtype, torch.float32)
        self._norm: nn.Module = copy.deepcopy(final_norm).to(self._dtype)
        self._weight = unembedding.weight
        self._bias = getattr(unembedding, "bias", None)
        self._soft_cap = model.logit_soft_cap

    def logits(
        self, residual: Float[Tensor, "row size"], tokens: Int[Tensor, " token"]
    ) -> Float[Tensor, "row token"]:
        """Logits of some tokens from the input of the final norm, capped as the model caps them."""
        normed = self._norm(residual.to(self._dtype))
        rows = self._weight[tokens.to(self._weight.device)].to(self._dtype)
        logits: Tensor = normed @ rows.T.to(normed.device)
        if self._bias is not None:
            logits = logits + self._bias[tokens.to(self._bias.device)].to(logits)
        if self._soft_cap is not None:
            logits = torch.tanh(logits / self._soft_cap) * self._soft_cap
        return logits

    def metric(
        self, residual: Float[Tensor, "row size"], answers: AnswerTokens
    ) -> Float[Tensor, " row"]:
        """The logit difference of each row."""
        tokens = torch.tensor([*answers.positive, *answers.negative])
        return logit_difference(self.logits(residual, tokens), len(answers.positive))


def logit_difference(logits: Float[Tensor, "row token"], positive: int) -> Float[Tensor, " row"]:
    """Log-sum-exp of the first `positive` logits minus that of the others, in logits.

    With one form an answer this is the plain difference of two logits; with several it is the
    logarithm of c+ / c-, the ratio of the answers' probabilities.
    """
    return logits[:, :positive].logsumexp(1) - logits[:, positive:].logsumexp(1)


def check_head(
    model: Model,
    *,
    ours: Float[Tensor, "row token"],
    own: Float[Tensor, "row token"],
) -> None:
    """Check that the metric reads the model as the model reads itself.

    Raises:
        UserError: the logits differ, as where an architecture scales them.
    """
    difference = float((ours - own).abs().max())
    if difference > _TOLERANCE.get(model.hf.dtype, _EXACT):
        raise UserError(
            f"the logits of {model.name} ({model.hf.config.model_type}) are not final norm, "
            f"unembedding and soft cap: they are off by {difference:.3g}. Its patching by the "
            "native backend would be wrong; try --backend nnsight"
        )


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
