"""Perplexity of prompts, from the forward pass that scores their answers.

1. While the model runs, keep what its final norm gives at every position.
2. Unembed those states a chunk of positions at a time: the logits of all positions at once would
   need as many numbers as there are tokens, times the vocabulary.
3. Average the surprise of each token after the first, and take its exponential.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.errors import UserError
from interp.models.model import Model
from interp.reading.tokens import Batch

CHUNK_LOGITS = 2**26
"""Logits that are in memory at once, beside those of the answers."""

_HEAD_TOLERANCE = 0.05
"""Largest difference between the model's own logits and ours, as a share of the largest logit."""


@contextmanager
def final_states(model: Model) -> Iterator[list[Tensor]]:
    """Within the block: a list that each forward pass adds its final states to.

    The states have the shape (batch, token, size).
    """
    states: list[Tensor] = []

    def keep(module: nn.Module, inputs: object, output: Tensor) -> None:
        states.append(output)

    handle = model.hf.get_submodule(model.architecture.final_norm).register_forward_hook(keep)
    try:
        yield states
    finally:
        handle.remove()


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
    _check_head(model, states[:, -1], last_logits)
    read = batch.attention_mask.bool()
    scored = read[:, :-1] & read[:, 1:]
    surprise = _surprise(model, states[:, :-1][scored], batch.token_ids[:, 1:][scored])
    rows = scored.nonzero()[:, 0]
    total = torch.zeros(len(batch.prompts), dtype=torch.float64, device=surprise.device)
    means = total.index_add(0, rows, surprise) / scored.sum(1)
    return means.exp().tolist()


def unembed(model: Model, states: Float[Tensor, "position size"]) -> Float[Tensor, "position v"]:
    """Next-token logits, in fp32, from final states."""
    logits: Tensor = model.unembedding(states).to(states.device).float()
    cap = model.logit_soft_cap
    return logits if cap is None else cap * torch.tanh(logits / cap)


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


def _check_head(
    model: Model, states: Float[Tensor, "batch size"], logits: Float[Tensor, "batch vocabulary"]
) -> None:
    """Refuse a model whose logits are not its unembedded final states, say scaled ones."""
    finite = logits.isfinite().all(-1)
    ours, theirs = unembed(model, states)[finite], logits[finite]
    if len(theirs) and (ours - theirs).abs().max() > _HEAD_TOLERANCE * theirs.abs().max():
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}) does more than unembed its final states "
            "and cap the logits, so perplexity cannot be computed for it; score its answers alone"
        )
