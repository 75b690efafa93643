"""Variants of attention: soft caps (Gemma 2), biases by position (T5), and sinks (gpt-oss)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interp.errors import ModelError


@contextmanager
def attention_seen(name: str, see: Callable[..., object]) -> Iterator[None]:
    """Within the block, give `see` all that a registered attention function is called with."""
    original: Callable[..., Any] = ALL_ATTENTION_FUNCTIONS[name]

    def seen(*tensors: Any, **options: Any) -> Any:
        see(*tensors, **options)
        return original(*tensors, **options)

    AttentionInterface.register(name, seen)
    try:
        yield
    finally:
        AttentionInterface.register(name, original)


def calls_registered(hf: PreTrainedModel, inputs: Mapping[str, Tensor]) -> bool:
    """Whether a pass calls the attention that transformers registers; Falcon's does not."""
    name, called = hf.config._attn_implementation, list[object]()
    if name not in ALL_ATTENTION_FUNCTIONS:
        return False
    with attention_seen(name, lambda *tensors, **_: called.append(tensors[0])), torch.no_grad():
        hf(**inputs)
    return bool(called)


Logits = Float[Tensor, "row head *query key"]


def attention_logits(
    products: Logits,
    size: int,
    *,
    scaling: float | None,
    softcap: float | None,
    position_bias: Float[Tensor, "#row head *query key"] | None,
) -> Logits:
    """Logits from the products of queries and keys, before any mask.

    By default, they are scaled by 1 / sqrt(size of a head). The soft cap c turns logits x into
    c tanh(x / c); the bias for each query and key is then added.
    """
    logits = products * (size**-0.5 if scaling is None else scaling)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    return logits if position_bias is None else logits + position_bias


def attention_weights(
    logits: Logits, sinks: Float[Tensor, " head"] | None, softmax: Callable[[Logits], Logits]
) -> Logits:
    """Softmax (over the last axis) of the logits, with masks added.

    The weights sum to less than 1 if sinks, one logit per head for a key without a value, receive
    a share.
    """
    if sinks is None:
        return softmax(logits)
    shape = (1, -1, *[1] * (logits.dim() - 2))
    shares = sinks.to(logits).view(shape).expand(*logits.shape[:-1], 1)
    return softmax(torch.cat([logits, shares], -1))[..., :-1]


def check_understood(options: Mapping[str, Any]) -> None:
    """Raise a ModelError if other arguments of attention, not known here, hold numbers."""
    for name, value in options.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            raise ModelError(
                f"the model's attention also depends on {name}, which is not known here, so it "
                "would be computed wrongly; omit methods that change its gradient, and read its "
                "weights with --attn-implementation eager"
            )
