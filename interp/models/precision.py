"""The type in which numbers of a model are computed on."""

import torch
from jaxtyping import Float
from torch import Tensor


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """float32, or the type itself if it is wider: results in float64 are not rounded."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The tensor in float32, or in float64 if the model computes in it."""
    return tensor.to(wide_type(tensor.dtype))
