"""Answers to prompts that begin alike, whose shared tokens are read once.

1. The prefixes of a batch's families are run in one pass. They are padded on the right, where no
   token before sees the padding, so that nothing is masked.
2. Part by part, the rest of each prompt is run behind the keys and values of its family. Rows stay
   aligned to the right as in a plain batch: positions, padding and sliding windows are the same.
3. The logits of the last position give the rows of the tables.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from interp.models.cache import gathered, holds_key_values_alone
from interp.models.model import Model
from interp.models.rotary import is_long
from interp.reading.readers import CausalReader
from interp.reading.shared_batches import Part, SharedBatch
from interp.reading.tokens import Batch, safe_width
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import AnswerRows, Predictions, answer_tables, predict


@torch.inference_mode()
def score_shared_batch(
    model: Model, batch: SharedBatch, answer_tokens: AnswerTokenizer
) -> list[AnswerRows]:
    """The rows of each prompt of a batch, with one pass for the prefixes and one for each part.

    They equal those of `score_batch` up to rounding.
    """
    return [
        rows
        for part, predictions in predict_parts(model, batch, answer_tokens)
        for rows in answer_tables(model, part, predictions)
    ]


def predict_parts(
    model: Model, batch: SharedBatch, answer_tokens: AnswerTokenizer
) -> Iterator[tuple[Batch, Predictions]]:
    """The prompts of each part as a plain batch, with what the model puts at their answers' place.

    Use it within `model.measuring()`.
    """
    prefixes = CausalReader(model).read_prefixes(batch.prefix_ids)
    for part in batch.parts:
        prompts = _prompts_of(batch, part)
        source = _source(batch, part, columns=prompts.token_ids.shape[1] - part.read)
        past = gathered(prefixes, source)
        yield prompts, predict(model, prompts, answer_tokens, past=past)


def readable_in_parts(model: Model, tokens: int) -> bool:
    """Whether prompts of up to so many tokens mean the same to a model when read in two steps.

    What one step hands to the next must be the keys and values of each layer and nothing else, and
    the rotary frequencies must be those of short prompts (`interp.models.rotary`).
    """
    takes_parts = {"position_ids", "past_key_values"} <= model.forward_arguments
    if model.kind.reads_ahead or model.is_recurrent or not takes_parts:
        return False
    return holds_key_values_alone(model) and not is_long(model, tokens)


def _prompts_of(batch: SharedBatch, part: Part) -> Batch:
    """The prompts of a part as a plain batch, no wider than they are."""
    prompts = batch.prompts[part.start : part.end]
    width = safe_width(max(len(prompt) for prompt in prompts), batch.token_ids.device)
    columns = (batch.token_ids, batch.attention_mask, batch.position_ids)
    return Batch(prompts, *(tensor[part.start : part.end, -width:] for tensor in columns))


def _source(batch: SharedBatch, part: Part, columns: int) -> Int[Tensor, "row column"]:
    """The prefix token in each of the columns that are not read again.

    Padding columns get their family's first token, which the attention mask hides.
    """
    rows = slice(part.start, part.end)
    end = batch.position_ids.shape[1] - part.read
    positions = batch.position_ids[rows, end - columns : end]
    return batch.family[rows, None] * batch.prefix_ids.shape[1] + positions
