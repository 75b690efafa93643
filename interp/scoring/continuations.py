"""How probable it is that a causal model continues prompts with given texts."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from interp.models.model import Model
from interp.reading.readers import CausalReader
from interp.reading.tokens import TokenizedPrompt, batches


def continuation_log_probabilities(
    model: Model,
    prompts: Sequence[TokenizedPrompt],
    continuations: Sequence[tuple[int, ...]],
    *,
    batch_tokens: int,
) -> Float[Tensor, " prompt"]:
    """Log-probability of all tokens of a continuation after its prompt, in nats, in fp64.

    The model reads the prompt and what it has written so far, so that this is the sum over the
    continuation's tokens.

    Args:
        model: a causal one, within `model.measuring()`.
        prompts: the prompts; one may come several times.
        continuations: the tokens behind each of them, at least one.
        batch_tokens: how many tokens a forward pass may hold, padding included.
    """
    read = [
        replace(prompt, token_ids=prompt.token_ids + tokens[:-1])
        for prompt, tokens in zip(prompts, continuations, strict=True)
    ]
    found = torch.empty(len(prompts), dtype=torch.float64)
    for indices, batch in batches(model, read, batch_tokens=batch_tokens):
        longest = max(len(continuations[index]) for index in indices)
        logits = CausalReader(model).last_logits(batch, longest)
        for index, row in zip(indices, logits, strict=True):
            tokens = continuations[index]
            # All texts end at the last position, which predicts the last token.
            log_p = row[-len(tokens) :].double().log_softmax(-1)
            found[index] = log_p[torch.arange(len(tokens)), list(tokens)].sum().cpu()
    return found
