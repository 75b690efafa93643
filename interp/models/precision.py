"""The type in which numbers of a model are computed on, and gradients as exact as it allows."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

_LEAST_ROWS = 4
"""The fewest rows whose product with a matrix is added up in blocks on CPUs."""


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """float32, or the type itself if it is wider: results in float64 are not rounded."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The tensor in float32, or in float64 if the model computes in it."""
    return tensor.to(wide_type(tensor.dtype))


@contextmanager
def exact_gradients(unembedding: nn.Module | None) -> Iterator[None]:
    """Within the block, gradients through a few rows of logits are as exact as those of many.

    The gradient of one row is a product over the vocabulary. BLAS adds up its numbers one by one
    if there are fewer than four rows, which in fp32 is off by 1e-5 to 1e-4 of the gradient with
    262,144 tokens; so rows of zeros are added, and cut off again.
    """
    cut: list[int] = []

    def add(module: nn.Module, inputs: Any) -> Any:
        cut.clear()
        states, *rest = inputs or [None]
        if states is None or not states.requires_grad:
            return None
        missing = _LEAST_ROWS - states.shape[:-1].numel()
        if states.dim() < 2 or missing <= 0:
            return None
        cut.append(states.shape[-2])
        return (functional.pad(states, (0, 0, 0, missing)), *rest)

    def take_off(module: nn.Module, inputs: Any, logits: Tensor) -> Tensor:
        return logits.narrow(-2, 0, cut.pop()) if cut else logits

    with ExitStack() as stack:
        if unembedding is not None:
            stack.callback(unembedding.register_forward_pre_hook(add).remove)
            stack.callback(unembedding.register_forward_hook(take_off).remove)
        yield
