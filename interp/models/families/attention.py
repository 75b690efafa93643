"""Variants of attention: soft caps (Gemma 2), biases by position (T5), and sinks (gpt-oss)."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interp.errors import ModelError


def calls_registered(hf: PreTrainedModel, inputs: Mapping[str, Tensor]) -> bool:
    """Whether a pass calls the attention function that transformers registers by its name.

    Most families' attention does; Falcon's computes attention by itself.
    """
    name, called = hf.config._attn_implementation, list[nn.Module]()
    if name not in ALL_ATTENTION_FUNCTIONS:
        return False
    original: Callable[..., Any] = ALL_ATTENTION_FUNCTIONS[name]

    def noted(module: nn.Module, *tensors: Any, **options: Any) -> Any:
        called.append(module)
        return original(module, *tensors, **options)

    AttentionInterface.register(name, noted)
    try:
        with torch.no_grad():
            hf(**inputs)
    finally:
        AttentionInterface.register(name, original)
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

    Args:
        products: each query times each key.
        size: size of a head.
        scaling: the factor of the products; by default, 1 / sqrt(size).
        softcap: the soft cap c, which turns logits x into c tanh(x / c); None for no cap.
        position_bias: a bias for each query and key, added to the logits; None for no bias.
    """
    logits = products * (size**-0.5 if scaling is None else scaling)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    return logits if position_bias is None else logits + position_bias


def attention_weights(
    logits: Logits, sinks: Float[Tensor, " head"] | None, softmax: Callable[[Logits], Logits]
) -> Logits:
    """Softmax of the logits; the weights sum to less than 1 if sinks receive a share.

    Args:
        logits: the logits, with masks added.
        sinks: one logit per head for a key without a value; None for no sinks.
        softmax: the softmax over the last axis.
    """
    if sinks is None:
        return softmax(logits)
    shape = (1, -1, *[1] * (logits.dim() - 2))
    shares = sinks.to(logits).view(shape).expand(*logits.shape[:-1], 1)
    return softmax(torch.cat([logits, shares], -1))[..., :-1]


def check_understood(options: Mapping[str, Any]) -> None:
    """Check the remaining arguments that transformers passes to an attention function.

    Raises:
        ModelError: one of them holds numbers, so attention depends on more than is known here.
    """
    for name, value in options.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            raise ModelError(
                f"the model's attention also depends on {name}, which is not known here, so it "
                "would be computed wrongly; omit methods that change its gradient, and read its "
                "weights with --attn-implementation eager"
            )
