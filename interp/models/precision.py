"""The type in which numbers of a model are computed on, and gradients as exact as it allows."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

_BLOCK = 4
"""Rows whose product with a matrix is added up in blocks on CPUs; others' numbers one by one."""


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """float32, or the type itself if it is wider: results in float64 are not rounded."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The tensor in float32, or in float64 if the model computes in it."""
    return tensor.to(wide_type(tensor.dtype))


@contextmanager
def exact_gradients(unembedding: nn.Module | None) -> Iterator[None]:
    """Within the block, gradients through any number of rows of logits are equally exact.

    The gradient of one row is a product over the vocabulary. BLAS adds up its numbers one by one
    in what is left over from blocks of four rows (in fewer than four, or, with several threads,
    in a number that four does not divide), which in fp32 is off by 1e-5 to 1e-4 of the gradient
    with 262,144 tokens; so rows of zeros are added, and cut off again.
    """
    cut: list[torch.Size] = []

    def add(module: nn.Module, inputs: Any) -> Any:
        cut.clear()
        states, *rest = inputs or [None]
        if states is None or not states.requires_grad:
            return None
        missing = -states.shape[:-1].numel() % _BLOCK
        if states.dim() < 2 or not missing:
            return None
        cut.append(states.shape[:-1])
        rows = functional.pad(states.flatten(0, -2), (0, 0, 0, missing))
        return (rows.reshape(*[1] * (states.dim() - 2), *rows.shape), *rest)

    def take_off(module: nn.Module, inputs: Any, logits: Tensor) -> Tensor:
        if not cut:
            return logits
        shape = cut.pop()
        return logits.flatten(0, -2)[: shape.numel()].reshape(*shape, -1)

    with ExitStack() as stack:
        if unembedding is not None:
            stack.callback(unembedding.register_forward_pre_hook(add).remove)
            stack.callback(unembedding.register_forward_hook(take_off).remove)
        yield
