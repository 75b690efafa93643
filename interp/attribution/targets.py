"""What is attributed: a scalar for each prompt, computed from its next-token logits."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.reading.tokens import Batch
from interp.scoring.answers import Predictions, token_logits

Objective = Float[Tensor, " batch"]


Tokens = Int[Tensor, " batch"]


def target_tokens(
    target: str, batch: Batch, predictions: Predictions
) -> tuple[Tokens, Tokens | None]:
    """The token of each prompt that is attributed and, for a contrast, the one against it."""
    logits, answers = predictions.logits, predictions.answers
    if target == "predicted":
        return predictions.token_ids, None
    if target == "gold":
        options = [
            tokens.positive if tokenized.prompt.gold else tokens.negative
            for tokenized, tokens in zip(batch.prompts, answers, strict=True)
        ]
        return _most_probable(logits, options), None
    return (
        _most_probable(logits, [tokens.positive for tokens in answers]),
        _most_probable(logits, [tokens.negative for tokens in answers]),
    )


def objective(target: str, batch: Batch, predictions: Predictions) -> Objective:
    """What is differentiated: log-odds of the target token, or the difference of two logits."""
    tokens, other = target_tokens(target, batch, predictions)
    logits = predictions.logits
    if other is None:
        return log_odds(logits, tokens)
    return (logits.gather(1, tokens[:, None]) - logits.gather(1, other[:, None])).squeeze(1)


def log_odds(logits: Float[Tensor, "batch vocabulary"], tokens: Int[Tensor, " batch"]) -> Objective:
    """Log p - log(1 - p) of one token a prompt, in nats.

    Its gradient is that of log p, and of p, times a positive factor, so that normalised scores and
    ratios are the same; but it does not vanish where p rounds to 0 or to 1.
    """
    own = logits.gather(1, tokens[:, None])
    others = logits.scatter(1, tokens[:, None], -torch.inf)
    return own.squeeze(1) - others.logsumexp(1)


def _most_probable(
    logits: Float[Tensor, "batch vocabulary"], options: Sequence[Sequence[int]]
) -> Int[Tensor, " batch"]:
    """The likeliest of each prompt's tokens."""
    best = [
        tokens[int(own.argmax())]
        for own, tokens in zip(token_logits(logits, options), options, strict=True)
    ]
    return torch.tensor(best, device=logits.device)
