"""The target: the scalar that is attributed, computed from the logits of a prompt's answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import UserError
from interp.prompts.prompt import Prompt
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokens
from interp.scoring.answers import Predictions, token_logits

Objective = Float[Tensor, " batch"]


@dataclass(frozen=True, slots=True)
class Attributed:
    """The tokens whose logits are attributed, for one prompt; of whole texts, their ways."""

    own: tuple[int, ...]
    """A single token or, for a margin, the tokens of all forms of an answer."""
    other: tuple[int, ...] | None = None
    """The tokens with which `own` is contrasted, if any."""

    @property
    def whole(self) -> bool:
        """Whether some are ways of more than one token, which are read behind the prompt."""
        return min((*self.own, *(self.other or ()))) < 0


def attributed_tokens(target: str, batch: Batch, predictions: Predictions) -> list[Attributed]:
    """The tokens whose logits are attributed, for each prompt.

    A contrast compares the two options that the answer's `contrast` lists or, without a list, the
    correct option and the most probable other option, each in its most probable form. A margin
    compares the two listed options, or the two most probable options, in all their forms, starting
    with the more probable one.

    Raises:
        UserError: a prompt's answer has no other option for a contrast or margin.
    """
    logits = predictions.columns
    if target == "predicted":
        written = zip(predictions.token_ids.tolist(), predictions.written(), strict=True)
        return [Attributed((top[0].column if top[0].column < 0 else id_,)) for id_, top in written]
    prompts = [tokenized.prompt for tokenized in batch.prompts]
    answers = predictions.answers
    if target == "gold":
        golds = [ids.of[prompt.answer.gold] for prompt, ids in zip(prompts, answers, strict=True)]
        return [Attributed((token,)) for token in _most_probable(logits, golds)]
    values = token_logits(logits, [answer.tokens for answer in answers])
    named = _margin if target == "margin" else _contrast
    pairs = [
        tokens.contrast(*named(prompt, _totals(tokens, of_tokens)))
        for prompt, tokens, of_tokens in zip(prompts, answers, values, strict=True)
    ]
    if target == "margin":
        return [Attributed(pair.positive, pair.negative) for pair in pairs]
    positive = _most_probable(logits, [pair.positive for pair in pairs])
    negative = _most_probable(logits, [pair.negative for pair in pairs])
    return [Attributed((own,), (other,)) for own, other in zip(positive, negative, strict=True)]


def _totals(answers: AnswerTokens, logits: Float[Tensor, " _token"]) -> dict[str, float]:
    """The logit of each option: the log-sum-exp of its tokens."""
    sizes = [len(tokens) for tokens in answers.of.values()]
    parts = torch.split(logits, sizes)
    return {name: float(part.logsumexp(0)) for name, part in zip(answers.of, parts, strict=True)}


def _contrast(prompt: Prompt, totals: Mapping[str, float]) -> tuple[str, str]:
    """The names of the two options whose difference is attributed."""
    if prompt.answer.contrast is not None:
        return prompt.answer.contrast
    others = [name for name in totals if name != prompt.answer.gold]
    if not others:
        raise _no_other(prompt)
    return prompt.answer.gold, max(others, key=totals.__getitem__)


def _margin(prompt: Prompt, totals: Mapping[str, float]) -> tuple[str, str]:
    """The names of two options: the model's own answer, and the option it is compared with."""
    names = prompt.answer.contrast or tuple(totals)
    if len(names) < 2:
        raise _no_other(prompt)
    answered, other, *_ = sorted(names, key=lambda name: -totals[name])
    return answered, other


def _no_other(prompt: Prompt) -> UserError:
    return UserError(
        f"prompt {prompt.id} requires {prompt.answer.needs}, so its answer cannot be contrasted; "
        "expected the target predicted or gold"
    )


def objective(target: str, batch: Batch, predictions: Predictions) -> Objective:
    """The target of each prompt as a differentiable tensor; see `values_of`."""
    return values_of(predictions, attributed_tokens(target, batch, predictions))


def values_of(predictions: Predictions, attributed: Sequence[Attributed]) -> Objective:
    """The log-odds of one token, in nats; for a contrast or margin, a difference of logits.

    The logit of several tokens is their log-sum-exp. A whole text counts like a token, whose
    probability is that of a reply that begins with the text. All prompts have the same target.
    """
    others = [of_prompt.other for of_prompt in attributed if of_prompt.other is not None]
    tokens = [of_prompt.own for of_prompt in attributed]
    columns = predictions.columns
    if others:
        return _joint(columns, tokens) - _joint(columns, others)
    chosen = zip(predictions.answers, tokens, strict=True)
    firsts = [answers.spelled(column)[0] for answers, (column,) in chosen]
    return log_odds(
        predictions.logits,
        torch.tensor(firsts, device=columns.device),
        None if firsts == [column for (column,) in tokens] else _picked(columns, tokens)[:, 0],
    )


def _joint(
    logits: Float[Tensor, "batch vocabulary"], tokens: Sequence[Sequence[int]]
) -> Float[Tensor, " batch"]:
    """The log-sum-exp of some tokens of each prompt."""
    width = max(map(len, tokens))
    filled = [[*ids, *[ids[0]] * (width - len(ids))] for ids in tokens]
    beyond = [[place >= len(ids) for place in range(width)] for ids in tokens]
    picked = _picked(logits, filled)
    return picked.masked_fill(torch.tensor(beyond, device=logits.device), -torch.inf).logsumexp(1)


def _picked(
    columns: Float[Tensor, "batch column"], chosen: Sequence[Sequence[int]]
) -> Float[Tensor, "batch chosen"]:
    """The chosen columns of each prompt, some of them counted from the end."""
    places = torch.tensor(chosen, device=columns.device)
    return columns.gather(1, places % columns.shape[1])


def log_odds(
    logits: Float[Tensor, "batch vocabulary"],
    tokens: Int[Tensor, " batch"],
    whole: Float[Tensor, " batch"] | None = None,
) -> Objective:
    """Log p - log(1 - p) of one token per prompt, in nats, or of a text that begins with it.

    Its gradient is a positive multiple of the gradients of p and log p, so normalized scores and
    ratios are identical. Unlike theirs, its gradient does not vanish if p rounds to 0 or 1.
    """
    logit = logits.gather(1, tokens[:, None])
    if whole is None:
        others = logits.scatter(1, tokens[:, None], -torch.inf)
        return logit.squeeze(1) - others.logsumexp(1)
    # The token also begins other texts, unless the text is the token itself and the rest is 0.
    rest = (whole[:, None] - logit).clamp(max=-torch.finfo(logits.dtype).tiny)
    others = logits.scatter(1, tokens[:, None], logit + torch.log(-torch.expm1(rest)))
    return whole - others.logsumexp(1)


def _most_probable(
    logits: Float[Tensor, "batch vocabulary"], options: Sequence[Sequence[int]]
) -> list[int]:
    values = token_logits(logits, options)
    return [tokens[int(scores.argmax())] for scores, tokens in zip(values, options, strict=True)]
