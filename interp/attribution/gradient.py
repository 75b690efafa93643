"""Input gradient (Simonyan et al. 2014), as inseq's saliency computes and aggregates it."""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.attribution.normalize import as_shares
from interp.reading.tokens import Batch


def gradient_scores(
    objective: Float[Tensor, " batch"],
    embeddings: Float[Tensor, "batch token size"],
    batch: Batch,
) -> Float[Tensor, "batch token"]:
    """Share of each token in the prompt's gradient: |d objective / d embedding| in the L2 norm.

    Shares are not negative and sum to 1 over a prompt; padding has 0. The objective of a prompt
    depends on its own embeddings alone, so one backward pass of the sum serves the whole batch.
    """
    (gradient,) = torch.autograd.grad(objective.sum(), embeddings)
    return as_shares(gradient.float().norm(dim=-1), batch)
