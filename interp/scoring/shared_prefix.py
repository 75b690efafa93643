"""Answers to prompts that begin alike, whose shared tokens are read once.

1. The prefixes of a batch's families are run in one pass. They are padded on the right, where no
   token before sees the padding, so that nothing is masked.
2. Part by part, the rest of each prompt is run behind the keys and values of its family. Rows stay
   aligned to the right as in a plain batch: positions, padding and sliding windows are the same.
3. The logits of the last position give the rows of the tables.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

from interp.models.model import Model
from interp.models.rotary import is_long
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
    prefixes = _read_prefixes(model, batch)
    for part in batch.parts:
        prompts = _prompts_of(batch, part)
        source = _source(batch, part, columns=prompts.token_ids.shape[1] - part.read)
        past = Cache(layers=[_PrefixLayer(*layer, source) for layer in prefixes])
        yield prompts, predict(model, prompts, answer_tokens, past=past)


def readable_in_parts(model: Model, tokens: int) -> bool:
    """Whether prompts of up to so many tokens mean the same to a model when read in two steps.

    What one step hands to the next must be the keys and values of each layer and nothing else, and
    the rotary frequencies must be those of short prompts (`interp.models.rotary`).
    """
    if model.is_recurrent or not {"position_ids", "past_key_values"} <= model.forward_arguments:
        return False
    config = model.hf.config.get_text_config()
    layers = DynamicCache(config=config).layers
    kinds = {type(layer) for layer in layers}
    return (
        len(layers) == config.num_hidden_layers
        and kinds <= {DynamicLayer, DynamicSlidingWindowLayer}
        and not is_long(model, tokens)
    )


def _read_prefixes(model: Model, batch: SharedBatch) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of each layer, (family x token, key-value head, size)."""
    cache: Any = DynamicCache()
    tokens = batch.prefix_ids.shape[1]
    model.hf.base_model(
        input_ids=batch.prefix_ids,
        attention_mask=torch.ones_like(batch.prefix_ids),
        position_ids=torch.arange(tokens, device=model.device)[None],
        past_key_values=cache,
        use_cache=True,
    )
    return [
        (layer.keys.transpose(1, 2).flatten(0, 1), layer.values.transpose(1, 2).flatten(0, 1))
        for layer in cache.layers
    ]


def _prompts_of(batch: SharedBatch, part: Part) -> Batch:
    """The prompts of a part as a plain batch, no wider than they are."""
    prompts = batch.prompts[part.start : part.end]
    width = safe_width(max(len(prompt) for prompt in prompts), batch.token_ids.device)
    columns = (batch.token_ids, batch.attention_mask, batch.position_ids)
    return Batch(prompts, *(tensor[part.start : part.end, -width:] for tensor in columns))


def _source(batch: SharedBatch, part: Part, columns: int) -> Int[Tensor, "row column"]:
    """The prefix token that stands in each of the columns that are not read again.

    Padding columns get their family's first token, which the attention mask hides.
    """
    rows = slice(part.start, part.end)
    end = batch.position_ids.shape[1] - part.read
    positions = batch.position_ids[rows, end - columns : end]
    return batch.family[rows, None] * batch.prefix_ids.shape[1] + positions


class _PrefixLayer(DynamicLayer):
    """Keys and values of prefixes, copied to the rows of a pass only while its layer attends.

    So the copies of one layer are in memory at a time, as without a cache.
    """

    def __init__(
        self,
        keys: Float[Tensor, "token head size"],
        values: Float[Tensor, "token head value_size"],
        source: Int[Tensor, "row column"],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers gives it no types
        self._keys, self._values, self._source = keys, values, source

    def get_seq_length(self) -> int:
        """The number of columns that precede those that are read."""
        return self._source.shape[1]

    def update(
        self, key_states: Tensor, value_states: Tensor, *unused: Any, **also_unused: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of all columns, (row, head, column, size); nothing is kept."""
        return (
            torch.cat([self._expanded(self._keys), key_states], -2),
            torch.cat([self._expanded(self._values), value_states], -2),
        )

    def _expanded(
        self, states: Float[Tensor, "token head size"]
    ) -> Float[Tensor, "row head column size"]:
        source = self._source.to(states.device)
        chosen = states.index_select(0, source.flatten())
        return chosen.view(*source.shape, *states.shape[1:]).transpose(1, 2)
