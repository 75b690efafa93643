"""Whether thoughts that another tool stored are a model's own, by the probabilities of its tokens.

A token that is sampled from a distribution has, on average, a surprisal equal to the entropy of the
distribution. The sum of surprisal minus entropy over a thought that the model has sampled at
temperature 1 thus has mean 0, whatever its length: it is a martingale, stopped when the thought
ends. At lower temperatures, or with the most probable tokens alone, it is below 0. What another
model has written, or this model after another prompt, is above 0.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from interp.errors import UserError
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.prompts.thought import END, Thought
from interp.reading.readers import CausalReader
from interp.reading.shared_batches import shared_tokens
from interp.reading.tokens import pad, tokenize, tokenize_whole

SAMPLE = 32
"""Number of thoughts that are checked, spread evenly over the prompts."""

MOST_TOKENS = 512
"""Number of tokens after which a thought is not read further."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """How much less probable thoughts are than a model's own, in nats per token."""

    mean: float
    """Surprisal minus entropy per token; 0 for thoughts that the model samples at temperature 1."""
    se: float
    """The standard error that it has for such thoughts, from the model's own distributions."""
    thoughts: int
    tokens: int


@torch.no_grad()
def thought_surprise(model: Model, prompts: Sequence[Prompt]) -> Surprise | None:
    """How much less probable a model's stored thoughts are than thoughts of its own.

    The ratio of sums over the first thoughts on at most `SAMPLE` prompts; None if the thoughts are
    not from a file, none can be read, or the weights are not on this machine. For thoughts of its
    own, the tokens' deviations are uncorrelated, so the variance of their sum is the sum of the
    variances of the surprisal in the model's distributions.
    """
    if model.thought_texts is None or not model.has_weights or model.kind is not CAUSAL:
        return None
    numbers = [number for number, prompt in enumerate(prompts) if model.thoughts.get(prompt.id)]
    step = max(1, len(numbers) / SAMPLE)
    chosen = [numbers[int(place * step)] for place in range(min(SAMPLE, len(numbers)))]
    excesses: list[Excess] = []
    for prompt in (prompts[number] for number in chosen):
        with suppress(UserError, RuntimeError), model.measuring():
            excesses.append(excess_surprisal(model, prompt, model.thoughts[prompt.id][0]))
    read = [excess for excess in excesses if excess.tokens and math.isfinite(excess.nats)]
    tokens = sum(excess.tokens for excess in read)
    if not tokens:
        return None
    se = math.sqrt(sum(excess.variance for excess in read)) / tokens
    return Surprise(sum(excess.nats for excess in read) / tokens, se, len(read), tokens)


class Excess(NamedTuple):
    """A thought's surprisal minus entropy."""

    nats: float
    """The sum over its tokens."""
    variance: float
    """The variance of this sum for thoughts that the model samples, in nats squared."""
    tokens: int


@torch.no_grad()
def excess_surprisal(model: Model, prompt: Prompt, thought: Thought) -> Excess:
    """The sum over a thought's tokens of surprisal minus entropy.

    The tokens begin after the generation prompt and end with the mark that ends the thought. Within
    `model.measuring()`. Of a long thought, the first `MOST_TOKENS` tokens are read.
    """
    bare = replace(prompt, thought=None, segments={}, roles={}, donors=())
    (before,) = tokenize(model, [bare])
    # A thought without an end is tokenized like any other, and has no end mark.
    (whole,) = tokenize_whole(model, [replace(bare, thought=replace(thought, ended=True))])
    start = shared_tokens(before.token_ids, whole.token_ids)
    end = whole.roles[END][1] if END in whole.roles else len(whole)
    end = min(end, start + MOST_TOKENS, model.context_length or end)
    if end <= start:
        return Excess(0.0, 0.0, 0)
    tokens = list(whole.token_ids[start:end])
    read = replace(whole, token_ids=whole.token_ids[: end - 1], segments={}, roles={})
    logits = CausalReader(model).last_logits(pad(model, [read]), len(tokens))[0]
    log_p = logits.double().log_softmax(-1)
    surprisal = -log_p[torch.arange(len(tokens)), tokens].sum()
    p = log_p.exp()
    entropy = torch.special.entr(p).sum(-1)
    # A token of probability 0, whose logarithm is infinite, adds nothing to a mean.
    squares = (p * log_p.square()).nan_to_num(0.0).sum(-1)
    variance = (squares - entropy.square()).clamp(min=0)
    return Excess(float(surprisal - entropy.sum()), float(variance.sum()), len(tokens))
