"""The tokens of a donor in the places of a prompt's own: the baseline of counterfactual methods.

The donor is another instance of the prompt's template, of those the first whose segments have the
numbers of tokens that come closest to the prompt's. A segment of n tokens whose donor has m takes,
at its token i, the donor's token floor((i + 1/2) m / n): token by token where m is n.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import UserError
from interp.models.model import Model
from interp.prompts.mixing import donors_of, mixed
from interp.reading.readers import reader_of
from interp.reading.tokens import Batch, TokenizedPrompt, tokenize


def counterfactual_embeddings(model: Model, batch: Batch) -> Float[Tensor, "batch token size"]:
    """Embeddings of the batch's tokens, those of segments exchanged for their donors'.

    Raises:
        UserError: a prompt without a donor of another instance.
    """
    token_ids = batch.token_ids.clone()
    for row, prompt in enumerate(batch.prompts):
        token_ids[row, batch.unpadded(row)] = torch.tensor(
            counterfactual_tokens(model, prompt), device=token_ids.device
        )
    return reader_of(model).embed(token_ids)


def counterfactual_tokens(model: Model, prompt: TokenizedPrompt) -> list[int]:
    """The prompt's tokens, those of segments exchanged for their donor's.

    Raises:
        UserError: it has no donor of another instance.
    """
    donors = donors_of(prompt.prompt, "instance")
    if not donors:
        raise UserError(
            f"prompt {prompt.prompt.id} has no donor from another instance, whose tokens a "
            "counterfactual baseline takes; choose methods without one, such as input_gradient"
        )
    names = tuple(donors[0].segments)
    given = (tokenize(model, [mixed(prompt.prompt, donor)])[0] for donor in donors)
    nearest = _nearest(prompt, given, names)
    token_ids = list(prompt.token_ids)
    for name in names:
        (start, end), (other, other_end) = prompt.segments[name], nearest.segments[name]
        count, others = end - start, other_end - other
        for index in range(count):
            source = other + (2 * index + 1) * others // (2 * count)
            token_ids[start + index] = nearest.token_ids[source]
    return token_ids


def _nearest(
    prompt: TokenizedPrompt, given: Iterator[TokenizedPrompt], names: Sequence[str]
) -> TokenizedPrompt:
    """The first with the closest lengths; the search stops at the first with equal lengths."""
    best, least = prompt, math.inf
    for other in given:
        unequal = sum(abs(_length(prompt, name) - _length(other, name)) for name in names)
        if unequal < least:
            best, least = other, unequal
        if not unequal:
            break
    return best


def _length(prompt: TokenizedPrompt, name: str) -> int:
    start, end = prompt.segments[name]
    return end - start
