"""Attention methods: plain attention, rollout, and norms of attention-weighted values."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.attribution.method import AnyModel, Captured, Heads, Need
from interp.errors import ModelError, UserError
from interp.models.model import Model
from interp.models.precision import wide, wide_type
from interp.models.sites import check_sites, layer_count, locate


class Attention(AnyModel):
    """Attention from the token at which the answer is read, averaged over heads and layers.

    Layers count equally, because each layer's weights on the prompt's tokens are divided by their
    sum. This sum is 1 unless the model has attention sinks (gpt-oss).
    """

    needs: frozenset[Need] = frozenset({"attention_rows"})

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Non-negative weights, one for each token, that sum to 1."""
        mask = captured.batch.attention_mask
        for row in captured.attention_rows:
            if row.shape[-1] != mask.shape[-1]:
                raise ModelError(
                    f"attention reads {row.shape[-1]} places, but the prompt has {mask.shape[-1]} "
                    "tokens: the model compresses or groups them, so attention has no score for "
                    "each token; omit the method (--methods input_gradient)"
                )
        rows = [row.to(mask.device).masked_fill(mask == 0, 0.0) for row in captured.attention_rows]
        return torch.stack([row / row.sum(-1, keepdim=True) for row in rows]).mean(0)


class AttentionRollout:
    """The last row of the product of all layers' A + I, each row adding up to 1.

    A, the mean of a layer's attention over heads, and the residual stream weigh equally. Encoders
    raise a UserError.
    """

    needs: frozenset[Need] = frozenset({"attention_maps"})

    def __init__(self, model: Model) -> None:
        refuse_encoder("attention_rollout", model)
        check_sites(model, ["pattern"], everywhere=True)

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Non-negative shares, one for each token, that sum to 1."""
        mask = captured.batch.attention_mask
        dtype = wide_type(captured.attention_maps[0].dtype)
        reached = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
        reached[:, -1] = 1.0
        for attention in reversed(captured.attention_maps):
            weights = attention.to(reached)
            # Attention to sinks (gpt-oss) is distributed over the other tokens proportionally.
            total = 1.0 + weights.sum(-1)
            reached = (reached / total).unsqueeze(1).bmm(weights).squeeze(1) + reached / total
        return reached


def refuse_encoder(name: str, model: Model) -> None:
    """Reject encoders, whose tokens attend to later tokens, for a causal attention method."""
    if not model.architecture.causal:
        raise UserError(
            f"the method {name} is not defined for encoders such as {model.name}: it "
            "assumes causal attention. Omit it from --methods; input_gradient, "
            "input_x_gradient, attention and leave_one_out:deletion, for instance, support "
            "encoders"
        )


class ValueWeightedNorm:
    """Norms of each token's contributions to the last token, averaged over heads and layers.

    A head's contribution is its attention to the token times the token's value, projected into the
    residual stream. It is computed without the norm that some architectures apply to the sum of all
    contributions. Encoders raise a UserError.
    """

    needs: frozenset[Need] = frozenset({"heads"})

    def __init__(self, model: Model) -> None:
        refuse_encoder("value_weighted_norm", model)
        check_sites(model, ["v", "z", "pattern"], everywhere=True)
        self._model = model

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Non-negative norms in the units of the residual stream."""
        places = [locate(self._model, "z", layer) for layer in range(layer_count(self._model))]
        norms = [
            _mean_norm(place.module, heads).to(captured.embeddings.device)
            for place, heads in zip(places, captured.heads, strict=True)
        ]
        return torch.stack(norms).mean(0)


@torch.no_grad()
def _mean_norm(projection: nn.Module, heads: Heads) -> Float[Tensor, "batch token"]:
    """The contribution of token i to the last token: the mean of |A_hi v_hi W_Oh| over heads h."""
    count = heads.weights.shape[1]
    values = heads.values.repeat_interleave(count // heads.values.shape[2], dim=2)
    nothing = torch.zeros_like(values)
    bias = projection(nothing[:1, :1].flatten(2))
    total = torch.zeros_like(wide(heads.weights[:, 0]))
    # One head at a time: quantized or offloaded weights cannot be sliced by head.
    for head in range(count):
        alone = nothing.clone()
        alone[:, :, head] = values[:, :, head]
        projected = wide(projection(alone.flatten(2)) - bias).norm(dim=-1)
        total += wide(heads.weights[:, head]) * projected
    return total / count
