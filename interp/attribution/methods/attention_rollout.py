"""Attention rollout (Abnar and Zuidema 2020)."""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.attribution.registry import refuse_encoder
from interp.attribution.shared_pass import Captured, Need
from interp.models.model import Model
from interp.models.sites import check_sites


class AttentionRollout:
    """What reaches the last token if attention and residual stream carry half each, layer by layer.

    Each layer is (A + I) with rows that sum to 1, A the mean over heads.

    Raises:
        UserError: the model's architecture is not understood, or that of an encoder.
    """

    needs: frozenset[Need] = frozenset({"attention_maps"})

    def __init__(self, model: Model) -> None:
        refuse_encoder("attention_rollout", model)
        check_sites(model, ["pattern"])

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Shares of each token, never negative, which sum to 1."""
        mask = captured.batch.attention_mask
        reached = torch.zeros(mask.shape, device=mask.device)
        reached[:, -1] = 1.0
        for attention in reversed(captured.attention_maps):
            weights = attention.to(reached)
            # What sinks take (gpt-oss) is left to the others in proportion.
            total = 1.0 + weights.sum(-1)
            reached = (reached / total).unsqueeze(1).bmm(weights).squeeze(1) + reached / total
        return reached
