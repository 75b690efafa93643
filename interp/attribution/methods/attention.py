"""Attention (Bahdanau et al. 2015), as inseq aggregates it."""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.attribution.shared_pass import Captured, Need
from interp.models.model import Model


class Attention:
    """What the last prompt token, which predicts the answer, attends to: mean of heads and layers.

    Every layer counts alike: each is divided by what it pays to the prompt's tokens, which is 1 but
    where it pays part of its attention to no token (the sinks of gpt-oss).
    """

    needs: frozenset[Need] = frozenset({"attention_rows"})

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Weights of each token, never negative, which sum to 1."""
        mask = captured.batch.attention_mask
        rows = [row.to(mask.device).masked_fill(mask == 0, 0.0) for row in captured.attention_rows]
        return torch.stack([row / row.sum(-1, keepdim=True) for row in rows]).mean(0)
