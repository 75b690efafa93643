"""Answers to prompts that begin alike, whose shared tokens are read once.

1. The prefixes of a batch are run: in one pass, or in parts behind what they share themselves.
2. Part by part, the rest of each prompt is run behind the keys and values of its prefix. Rows stay
   aligned to the right as in a plain batch: positions, padding and sliding windows are the same.
3. The logits of the last position give the rows of the tables.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional

from interp.models.cache import KeyValues, gathered, holds_key_values_alone, is_long, joined
from interp.models.model import Model
from interp.reading.readers import CausalReader
from interp.reading.shared_batches import Part, Prefixes, SharedBatch
from interp.reading.tokens import Batch, safe_width
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import AnswerRows, Predictions, answer_tables, predict


@torch.inference_mode()
def score_shared_batch(
    model: Model, batch: SharedBatch, answer_tokens: AnswerTokenizer
) -> list[AnswerRows]:
    """Answer rows of a batch: one pass over the prefixes, then one over each part.

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
    states, places = _read_prefixes(CausalReader(model), batch.prefixes)
    for part in batch.parts:
        prompts = _prompts_of(batch, part)
        past = gathered(states, _source(batch, part, places))
        yield prompts, predict(model, prompts, answer_tokens, past=past)


def _read_prefixes(
    reader: CausalReader, prefixes: Prefixes
) -> tuple[KeyValues, Int[Tensor, "prefix position"]]:
    """Keys and values of the prefixes' tokens, and which of them is at each position."""
    if isinstance(prefixes, Tensor):
        places = torch.arange(prefixes.numel(), device=prefixes.device).view(prefixes.shape)
        return reader.read_prefixes(prefixes), places
    states, places = _read_prefixes(reader, prefixes.prefixes)
    missing = prefixes.token_ids.shape[1] - places.shape[1]
    own = functional.pad(places[prefixes.prefix], (0, missing))
    found, stored = [states], len(states[0][0])
    for part in prefixes.parts:
        if not part.read:  # what other prefixes begin with, read already
            continue
        rest = _prompts_of(prefixes, part)
        past = gathered(states, _source(prefixes, part, places), kept=True)
        found.append(reader.read_behind(rest, past))
        new = torch.arange(stored, stored + len(rest.prompts) * part.read, device=own.device)
        positions = rest.position_ids[:, -part.read :]
        own[part.start : part.end].scatter_(1, positions, new.view(positions.shape))
        stored += len(new)
    return joined(found), own


def readable_in_parts(model: Model, tokens: int) -> bool:
    """Whether prompts of up to so many tokens mean the same to a model when read in two steps.

    What one step hands to the next must be the keys and values of each layer and nothing else, and
    the rotary frequencies must be those of short prompts (`interp.models.cache`).
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


def _source(
    batch: SharedBatch, part: Part, places: Int[Tensor, "prefix position"]
) -> Int[Tensor, "row column"]:
    """The prefix token in each of the columns that are not read again.

    Padding columns get their prefix's first token, which the attention mask hides.
    """
    positions = _prompts_of(batch, part).position_ids[:, : -part.read]
    return places[batch.prefix[part.start : part.end]].gather(1, positions)
