"""Variants of attention: soft caps on logits (Gemma 2), and sinks (gpt-oss)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Logits = Float[Tensor, "row head *query key"]


def attention_logits(
    products: Logits, size: int, *, scaling: float | None, softcap: float | None
) -> Logits:
    """Logits from the products of queries and keys, before any mask.

    Args:
        products: each query times each key.
        size: size of a head.
        scaling: the factor of the products; by default, 1 / sqrt(size).
        softcap: the soft cap c, which turns logits x into c tanh(x / c); None for no cap.
    """
    logits = products * (size**-0.5 if scaling is None else scaling)
    return logits if softcap is None else torch.tanh(logits / softcap) * softcap


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
