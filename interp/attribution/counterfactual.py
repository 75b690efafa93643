"""Donors' tokens as the baseline of counterfactual methods.

The donor is another instance of the prompt's template: the first of those whose segment lengths, in
tokens, are closest to the prompt's. Token i of a segment of n tokens is replaced by token floor((i
+ 1/2) m / n) of the donor's m tokens, which is token i if m = n. Tokens before the first difference
from the donor score zero, so one pass without a gradient is enough for them.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor
from transformers.cache_utils import Cache

from interp.errors import UserError
from interp.models.cache import readable_in_parts
from interp.models.model import Model
from interp.prompts.mixing import donors_of, mixed
from interp.reading.shared_batches import PASS_TOKENS
from interp.reading.tokens import Batch, TokenizedPrompt, tokenize
from interp.scoring.shared_prefix import read_start


def counterfactual_ids(model: Model, batch: Batch) -> Int[Tensor, "batch token"]:
    """The batch's tokens, with each segment's tokens replaced by those of its donor."""
    token_ids = batch.token_ids.clone()
    for row, prompt in enumerate(batch.prompts):
        token_ids[row, batch.unpadded(row)] = torch.tensor(
            counterfactual_tokens(model, prompt), device=token_ids.device
        )
    return token_ids


def equal_columns(model: Model, batch: Batch, donors: Int[Tensor, "batch token"]) -> int:
    """The number of leading columns that equal the donors' columns and can be run separately.

    The last column is never counted. The number is zero if the model cannot read a prompt in parts.
    """
    width = batch.token_ids.shape[1]
    if not readable_in_parts(model, width):
        return 0
    differing = (batch.token_ids != donors).any(0)[:-1].nonzero()
    return int(differing[0]) if len(differing) else width - 1


def shared_start(
    model: Model, batch: Batch, donors: Int[Tensor, "batch token"], *, kept: bool
) -> tuple[int, Cache | None]:
    """The number of `equal_columns`, and their cache; none are run alone if that saves little.

    `kept` tells whether the cache also keeps what a pass adds.
    """
    start, prompts = equal_columns(model, batch, donors), len(batch.prompts)
    if start * prompts <= PASS_TOKENS:
        return 0, None
    return start, read_start(model, batch, start).past(prompts, kept=kept)


def counterfactual_tokens(model: Model, prompt: TokenizedPrompt) -> list[int]:
    """The prompt's tokens, with each segment's tokens replaced by those of the donor."""
    donors = donors_of(prompt.prompt, "instance")
    if not donors:
        raise UserError(
            f"prompt {prompt.prompt.id} has no donor from another instance to serve as a "
            "counterfactual baseline; choose methods without one, such as input_gradient"
        )
    names = tuple(donors[0].segments)
    nearest, least = prompt, math.inf
    for donor in donors:
        (candidate,) = tokenize(model, [mixed(prompt.prompt, donor)])
        unequal = sum(abs(_length(prompt, name) - _length(candidate, name)) for name in names)
        if unequal < least:
            nearest, least = candidate, unequal
        if not unequal:
            break
    token_ids = list(prompt.token_ids)
    for name in names:
        (start, end), (other, other_end) = prompt.segments[name], nearest.segments[name]
        count, others = end - start, other_end - other
        for index in range(count):
            source = other + (2 * index + 1) * others // (2 * count)
            token_ids[start + index] = nearest.token_ids[source]
    return token_ids


def _length(prompt: TokenizedPrompt, name: str) -> int:
    start, end = prompt.segments[name]
    return end - start
