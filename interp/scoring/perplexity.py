"""Perplexity of prompts, from the forward pass that scores their answers.

1. While the model runs, keep what its final norm gives at every position.
2. Unembed those states a chunk of positions at a time: the logits of all positions at once would
   need as many numbers as there are tokens, times the vocabulary.
3. Average the surprise of each token after the first, and take its exponential.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.models.model import Model
from interp.models.unembedding import check_unembedding, unembed
from interp.reading.tokens import Batch

CHUNK_LOGITS = 2**26
"""Logits that are in memory at once, beside those of the answers."""


def perplexities(
    model: Model,
    batch: Batch,
    states: Float[Tensor, "batch token size"],
    *,
    last_logits: Float[Tensor, "batch vocabulary"],
) -> list[float]:
    """Perplexity of each prompt: exp of the mean surprise, in nats, of its tokens (paper, 4.2.1).

    Everything that the model reads counts from its second token on, a chat template included; the
    first token has nothing before it. A prompt of one token has no perplexity: NaN.

    Args:
        model: the model, within `model.measuring()`.
        batch: the prompts.
        states: what the final norm gave in the forward pass.
        last_logits: the model's logits at the last position of that pass, to check ours against.

    Raises:
        UserError: the model makes its logits in a way that is not understood here.
    """
    # A model on several devices ends on another one than it begins on.
    states = states.to(batch.attention_mask.device)
    check_unembedding(model, states[:, -1], last_logits)
    read = batch.attention_mask.bool()
    scored = read[:, :-1] & read[:, 1:]
    surprise = _surprise(model, states[:, :-1][scored], batch.token_ids[:, 1:][scored])
    rows = scored.nonzero()[:, 0]
    total = torch.zeros(len(batch.prompts), dtype=torch.float64, device=surprise.device)
    means = total.index_add(0, rows, surprise) / scored.sum(1)
    return means.exp().tolist()


def _surprise(
    model: Model, states: Float[Tensor, "position size"], tokens: Int[Tensor, " position"]
) -> Float[Tensor, " position"]:
    """Minus the log-probability of each token, in nats, in fp64."""
    vocabulary = int(model.hf.config.get_text_config().vocab_size)
    chunk = max(1, CHUNK_LOGITS // vocabulary)
    parts = [
        nn.functional.cross_entropy(unembed(model, part), part_tokens, reduction="none")
        for part, part_tokens in zip(
            torch.split(states, chunk), torch.split(tokens, chunk), strict=True
        )
    ]
    return torch.cat(parts).double()
