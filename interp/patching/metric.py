"""The metric: the logit difference of the two contrasted options, in fp32."""

import math
from contextlib import AbstractContextManager

from jaxtyping import Float
from torch import Tensor

from interp.models.unembedding import ExactLogits
from interp.scoring.answer_tokens import ContrastTokens
from interp.tables import NO_GAP


def answers_alone(logits: ExactLogits, answers: ContrastTokens) -> AbstractContextManager[None]:
    """Within the block the model's logits are those of the positive, then negative tokens."""
    return logits.of([*answers.positive, *answers.negative])


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
