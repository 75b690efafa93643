"""Norms of attention-weighted values (Kobayashi et al. 2020)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.attribution.registry import refuse_encoder
from interp.attribution.shared_pass import Captured, Heads, Need
from interp.models.architectures import attentions_of
from interp.models.model import Model
from interp.models.sites import check_sites


class ValueWeightedNorm:
    """The norm of what a head brings the last token from a token, mean over heads, then layers.

    That is the head's attention to the token times the token's value, projected into the residual
    stream; without the norm that some architectures apply to the sum of all heads and tokens.

    Raises:
        UserError: the model's architecture is not understood, or that of an encoder.
    """

    needs: frozenset[Need] = frozenset({"heads"})

    def __init__(self, model: Model) -> None:
        refuse_encoder("value_weighted_norm", model)
        check_sites(model, ["v", "z", "pattern"])
        self._model = model

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Norms in the unit of the residual stream, never negative."""
        path = self._model.architecture.heads_out
        attentions = attentions_of(self._model.hf, self._model.architecture)
        norms = [
            _mean_norm(attention.get_submodule(path), heads).to(captured.embeddings.device)
            for attention, heads in zip(attentions, captured.heads, strict=True)
        ]
        return torch.stack(norms).mean(0)


@torch.no_grad()
def _mean_norm(projection: nn.Module, heads: Heads) -> Float[Tensor, "batch token"]:
    """The mean over heads of |A_hi (v_i W_O)_h|.

    The projection is called head by head, since quantized or offloaded weights cannot be read.
    """
    count = heads.weights.shape[1]
    values = heads.values.repeat_interleave(count // heads.values.shape[2], dim=2)
    nothing = torch.zeros_like(values)
    bias = projection(nothing[:1, :1].flatten(2))
    total = torch.zeros_like(heads.weights[:, 0], dtype=torch.float32)
    for head in range(count):
        alone = nothing.clone()
        alone[:, :, head] = values[:, :, head]
        projected = (projection(alone.flatten(2)) - bias).float().norm(dim=-1)
        total += heads.weights[:, head].float() * projected
    return total / count
