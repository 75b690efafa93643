"""What is attributed: a scalar for each prompt, computed from its next-token logits."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.prompts.tokens import Batch
from interp.scoring.answers import Predictions

Objective = Float[Tensor, " batch"]


def predicted(batch: Batch, predictions: Predictions) -> Objective:
    """Log-odds of the most probable token: the answer that the model itself prefers."""
    return log_odds(predictions.logits, predictions.token_ids)


def gold(batch: Batch, predictions: Predictions) -> Objective:
    """Log-odds of the correct answer, in its most probable form."""
    options = [
        answers.positive if tokenized.prompt.gold else answers.negative
        for tokenized, answers in zip(batch.prompts, predictions.answers, strict=True)
    ]
    return log_odds(predictions.logits, _most_probable(predictions.logits, options))


def contrast(batch: Batch, predictions: Predictions) -> Objective:
    """Logit of the positive answer minus logit of the negative one, each in its likeliest form."""
    logits = predictions.logits
    positive = _most_probable(logits, [answers.positive for answers in predictions.answers])
    negative = _most_probable(logits, [answers.negative for answers in predictions.answers])
    difference = logits.gather(1, positive[:, None]) - logits.gather(1, negative[:, None])
    return difference.squeeze(1)


TARGETS: dict[str, Callable[[Batch, Predictions], Objective]] = {
    "predicted": predicted,
    "gold": gold,
    "contrast": contrast,
}
"""Values of --target."""


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
        tokens[int(row[list(tokens)].argmax())]
        for row, tokens in zip(logits.detach(), options, strict=True)
    ]
    return torch.tensor(best, device=logits.device)
