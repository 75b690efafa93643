"""What is attributed: a scalar for each prompt, computed from its next-token logits."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import UserError
from interp.prompts.prompt import Prompt
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.answers import Predictions, token_logits

Objective = Float[Tensor, " batch"]


Tokens = Int[Tensor, " batch"]


def target_tokens(
    target: str, batch: Batch, predictions: Predictions
) -> tuple[Tokens, Tokens | None]:
    """The token of each prompt that is attributed and, for a contrast, the one against it.

    An answer counts in its most probable form. A contrast is that of the two options that the
    answer names, otherwise of the correct option with the most probable of the others; a margin is
    that of the likelier of the two that the answer names, otherwise of the two likeliest.

    Raises:
        UserError: a contrast or margin of a prompt whose answer has no other option.
    """
    logits = predictions.logits
    if target == "predicted":
        return predictions.token_ids, None
    prompts = [tokenized.prompt for tokenized in batch.prompts]
    if target == "gold":
        golds = [
            tokens.of[prompt.answer.gold]
            for prompt, tokens in zip(prompts, predictions.answers, strict=True)
        ]
        return _most_probable(logits, golds), None
    values = token_logits(logits, [answers.tokens for answers in predictions.answers])
    named = _margin if target == "margin" else _contrast
    pairs = [
        answers.contrast(*named(prompt, _totals(answers, own)))
        for prompt, answers, own in zip(prompts, predictions.answers, values, strict=True)
    ]
    return (
        _most_probable(logits, [pair.positive for pair in pairs]),
        _most_probable(logits, [pair.negative for pair in pairs]),
    )


def _totals(answers: AnswerTokens, logits: Float[Tensor, " _token"]) -> dict[str, float]:
    """The logit of each option, of several tokens their log-sum-exp; `logits` of all tokens."""
    sizes = [len(tokens) for tokens in answers.of.values()]
    parts = torch.split(logits, sizes)
    return {name: float(own.logsumexp(0)) for name, own in zip(answers.of, parts, strict=True)}


def _contrast(prompt: Prompt, totals: Mapping[str, float]) -> tuple[str, str]:
    """The names of the two options whose difference is attributed."""
    if prompt.answer.contrast is not None:
        return prompt.answer.contrast
    others = [name for name in totals if name != prompt.answer.gold]
    if not others:
        raise _no_other(prompt)
    return prompt.answer.gold, max(others, key=totals.__getitem__)


def _margin(prompt: Prompt, totals: Mapping[str, float]) -> tuple[str, str]:
    """The names of the model's own answer and of the other."""
    names = prompt.answer.contrast or tuple(totals)
    if len(names) < 2:
        raise _no_other(prompt)
    own, other, *_ = sorted(names, key=lambda name: -totals[name])
    return own, other


def _no_other(prompt: Prompt) -> UserError:
    return UserError(
        f"prompt {prompt.id} asks for {prompt.answer.needs}, so its answer has nothing to be "
        "contrasted with; expected the target predicted or gold"
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
