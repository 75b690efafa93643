"""What a patch writes: activations of the source prompt, brought to the tokens of the base prompt.

Each function takes activations from token `start` on (0, or the first that differs) and returns
them for the base's tokens from there on; rows of tokens without a counterpart hold zeros.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.patching.alignment import Alignment


def bring(
    source: Float[Tensor, "source head size"], alignment: Alignment, *, start: int
) -> Float[Tensor, "base head size"]:
    """The activations that each base token takes: its counterpart's, or the mean of several."""
    weights = _shares(alignment.sources, len(alignment.bases))[start:, start:].to(source)
    return torch.einsum("bs,shd->bhd", weights, source)


def bring_pattern(
    source: Float[Tensor, "head query key"], alignment: Alignment, *, start: int
) -> Float[Tensor, "head base base_key"]:
    """The attention weights that each base token takes, over all tokens of the base prompt.

    The attention that the source pays to a token goes to the tokens that correspond to it. What
    would go to tokens after the query, as the policy "mean" may ask, is dropped, and the row is
    scaled to its sum again.
    """
    queries = _shares(alignment.sources, len(alignment.bases))[start:, start:].to(source)
    keys = _shares(alignment.bases, len(alignment.sources)).to(source)
    written = torch.einsum("bs,hst,tk->hbk", queries, source, keys)
    kept = written.tril(start)
    scale = written.sum(-1, keepdim=True) / kept.sum(-1, keepdim=True)
    return torch.where(scale.isfinite(), kept * scale, kept)


def _shares(members: Sequence[Sequence[int]], width: int) -> Float[Tensor, "row width"]:
    """For each row equal shares of its members."""
    shares = torch.zeros(len(members), width)
    for row, columns in enumerate(members):
        shares[row, list(columns)] = 1 / max(len(columns), 1)
    return shares
