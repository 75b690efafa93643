"""Attention (Bahdanau et al. 2015), as inseq aggregates it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.attribution.normalize import as_shares
from interp.reading.tokens import Batch


def attention_scores(
    rows: Sequence[Float[Tensor, "batch token"]], batch: Batch
) -> Float[Tensor, "batch token"]:
    """Share of each token in the attention of the last prompt token, which predicts the answer.

    `rows` holds one row a layer, each the mean over its heads; the scores are the mean over layers.
    Every layer counts alike, also where it pays part of its attention to no token (the sinks of
    gpt-oss).
    """
    device = batch.attention_mask.device
    return as_shares(torch.stack([as_shares(row.to(device), batch) for row in rows]).mean(0), batch)
