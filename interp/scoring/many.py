"""Answers to any number of prompts: what they share is read once, and memory may end."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from interp.models.model import Model
from interp.reading.budget import TokenBudget, is_out_of_memory
from interp.reading.shared_batches import SharedBatch, shared_batches
from interp.reading.tokens import Batch, TokenizedPrompt, batches
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import Predictions, predict
from interp.scoring.shared_prefix import predict_parts, readable_in_parts

_Result = TypeVar("_Result")


def answer_batches(
    model: Model, prompts: Sequence[TokenizedPrompt], *, batch_tokens: int
) -> Iterator[tuple[list[int], Batch]]:
    """Batches of prompts that begin alike where that saves enough, and of others by length.

    Yields the indices of each batch's prompts with the batch.
    """
    longest = max((len(prompt) for prompt in prompts), default=0)
    if readable_in_parts(model, longest):
        return shared_batches(model, prompts, batch_tokens=batch_tokens)
    return batches(model, prompts, batch_tokens=batch_tokens)


def read_all(
    model: Model,
    prompts: Sequence[TokenizedPrompt],
    answer_tokens: AnswerTokenizer,
    budget: TokenBudget,
    *,
    read: Callable[[Predictions], Sequence[_Result]],
) -> list[_Result]:
    """What `read` takes from the model's predictions for each prompt, without a gradient.

    Use it within `model.measuring()`. When memory ends, what is left is read in smaller batches.

    Raises:
        RuntimeError: memory ended on a single prompt.
    """
    found: dict[int, _Result] = {}
    while len(found) < len(prompts):
        waiting = [index for index in range(len(prompts)) if index not in found]
        left = [prompts[index] for index in waiting]
        for places, batch in answer_batches(model, left, batch_tokens=budget.tokens):
            try:
                results = _read_batch(model, batch, answer_tokens, read)
            except RuntimeError as error:
                if len(places) == 1 or not is_out_of_memory(error):
                    raise
                budget.shrink(batch.token_ids.numel())
                break
            found |= zip([waiting[place] for place in places], results, strict=True)
    return [found[index] for index in range(len(prompts))]


@torch.inference_mode()
def _read_batch(
    model: Model,
    batch: Batch,
    answer_tokens: AnswerTokenizer,
    read: Callable[[Predictions], Sequence[_Result]],
) -> list[_Result]:
    if isinstance(batch, SharedBatch):
        parts = predict_parts(model, batch, answer_tokens)
        return [result for _, predictions in parts for result in read(predictions)]
    return list(read(predict(model, batch, answer_tokens)))
