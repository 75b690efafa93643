"""The normalisation that token scores of all methods share."""

from jaxtyping import Float
from torch import Tensor

from interp.reading.tokens import Batch


def as_shares(scores: Float[Tensor, "batch token"], batch: Batch) -> Float[Tensor, "batch token"]:
    """Scores divided by their sum over all tokens of the prompt, special tokens included.

    Padding gets 0. A prompt whose scores sum to nothing, or hold no number, comes out non-finite.
    """
    scores = scores.masked_fill(batch.attention_mask == 0, 0.0)
    return scores / scores.sum(-1, keepdim=True)
