"""Likelihood of texts: the perplexity of prompts and the probability of continuations."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.models.model import Model
from interp.models.unembedding import check_unembedding, unembed
from interp.reading.readers import CausalReader
from interp.reading.tokens import Batch, TokenizedPrompt, batches

CHUNK_LOGITS = 2**26
"""Largest number of logits in memory at once, not counting those for the answers."""


def perplexities(
    model: Model,
    batch: Batch,
    states: Float[Tensor, "batch token size"],
    *,
    last_logits: Float[Tensor, "batch vocabulary"],
) -> list[float]:
    """Perplexity of each prompt: exp of its tokens' mean surprisal in nats (Chan et al. 2024).

    Every token except the first counts, including the tokens of a chat template. The perplexity of
    a prompt of one token is NaN. Within `model.measuring()`. `states` are the output of the final
    norm in the forward pass, and `last_logits` the logits at its last position, used as a check.

    Raises:
        UserError: the model's logits are not its unembedded final states.
    """
    # A model that is spread over several devices begins and ends on different devices.
    states = states.to(batch.attention_mask.device)
    check_unembedding(model, states[:, -1], last_logits)
    read = batch.attention_mask.bool()
    scored = read[:, :-1] & read[:, 1:]
    chunk = max(1, CHUNK_LOGITS // int(model.text_config.vocab_size))
    tokens = torch.split(batch.token_ids[:, 1:][scored], chunk)
    parts = zip(torch.split(states[:, :-1][scored], chunk), tokens, strict=True)
    entropy = partial(nn.functional.cross_entropy, reduction="none")
    surprise = torch.cat([entropy(unembed(model, s), t) for s, t in parts]).double()
    rows = scored.nonzero()[:, 0]
    total = torch.zeros(len(batch.prompts), dtype=torch.float64, device=surprise.device)
    means = total.index_add(0, rows, surprise) / scored.sum(1)
    return means.exp().tolist()


def continuation_log_probabilities(
    model: Model,
    prompts: Sequence[TokenizedPrompt],
    continuations: Sequence[tuple[int, ...]],
    *,
    batch_tokens: int,
) -> Float[Tensor, " prompt"]:
    """Log-probability of each continuation after its prompt, in nats, in fp64.

    Within `model.measuring()` of a causal model. Prompts may repeat; passes have at most
    `batch_tokens` tokens, including padding.
    """
    read = [
        replace(prompt, token_ids=prompt.token_ids + tokens[:-1])
        for prompt, tokens in zip(prompts, continuations, strict=True)
    ]
    log_probabilities = torch.empty(len(prompts), dtype=torch.float64)
    for indices, batch in batches(model, read, batch_tokens=batch_tokens):
        longest = max(len(continuations[index]) for index in indices)
        logits = CausalReader(model).last_logits(batch, longest)
        for index, row in zip(indices, logits, strict=True):
            tokens = continuations[index]
            # All sequences end at the last position, which predicts the last token.
            log_p = row[-len(tokens) :].double().log_softmax(-1)
            log_probabilities[index] = log_p[torch.arange(len(tokens)), list(tokens)].sum().cpu()
    return log_probabilities
