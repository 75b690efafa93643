"""Answers to any number of prompts: shared tokens are read once; batches shrink if memory runs out.

A batch's prefixes are read in one pass, or in parts after the tokens that they share. Then, part by
part, the model reads the rest of each prompt, using the keys and values of its prefix. Rows are
right-aligned as in a plain batch, with unchanged positions, padding and sliding windows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional
from transformers.cache_utils import Cache

from interp.console import passed
from interp.models.cache import KeyValues, gathered, joined, readable_in_parts
from interp.models.model import Model
from interp.reading.budget import TokenBudget, unless_memory_ends
from interp.reading.readers import CausalReader
from interp.reading.shared_batches import (
    PASS_TOKENS,
    BatchPart,
    Prefixes,
    SharedBatch,
    Tokens,
    shared_batches,
    shared_tokens,
)
from interp.reading.tokens import Batch, TokenizedPrompt, batches, safe_width
from interp.scoring.answers import LookUp, Predictions, predict, read_prompts

_Result = TypeVar("_Result")


@dataclass(slots=True)
class LastPrefixes:
    """The prefixes of the batch read last, kept for a batch that begins with the same tokens."""

    tokens: Sequence[Tokens] = ()
    """The tokens of each prefix."""
    states: KeyValues | None = None
    places: Int[Tensor, "prefix position"] | None = None
    """The index into `states` of the token at each position."""

    def take(self, tokens: Tokens) -> tuple[int, KeyValues]:
        """Number of initial tokens already read, and their keys and values; the rest is dropped."""
        states, self.states = self.states, None
        counts = [shared_tokens(tokens, prefix) for prefix in self.tokens]
        if states is None or self.places is None or max(counts) <= PASS_TOKENS:
            return 0, []
        places = self.places[counts.index(max(counts)), : max(counts)]
        return len(places), [
            (keys[places.to(keys.device)], values[places.to(values.device)])
            for keys, values in states
        ]


def predict_batch(
    model: Model, batch: Batch, answer_tokens: LookUp, last: LastPrefixes | None = None
) -> Iterator[tuple[Batch, Predictions]]:
    """Yield a batch's prompts in order as plain batches, each with the predictions for its answers.

    Leading tokens that the prefixes share with one in `last` are not read again; they then replace
    those in `last`. Use this function within `model.measuring()`.
    """
    if not isinstance(batch, SharedBatch):
        yield batch, predict(model, batch, answer_tokens)
        return
    last = LastPrefixes() if last is None else last
    prefixes = batch.prefixes
    states, places = _read_prefixes(CausalReader(model), prefixes, last)
    if isinstance(prefixes, Tensor):
        last.tokens = [tuple(row) for row in prefixes.tolist()]
    else:
        last.tokens = [prompt.token_ids for prompt in prefixes.prompts]
    last.states, last.places = states, places
    answers = [answer_tokens(prompt) for prompt in batch.prompts]
    for part in batch.parts:
        prompts, part_answers = _prompts_of(batch, part), answers[part.start : part.end]
        follows = any(tokens.ways for tokens in part_answers)
        past = gathered(states, _source(batch, part, places), kept=follows)
        yield prompts, read_prompts(model, prompts, part_answers, past=past).predictions()


def _read_prefixes(
    reader: CausalReader, prefixes: Prefixes, last: LastPrefixes
) -> tuple[KeyValues, Int[Tensor, "prefix position"]]:
    """Keys and values of the prefixes' tokens and, for each prefix, the indices of its tokens."""
    if isinstance(prefixes, Tensor):
        places = torch.arange(prefixes.numel(), device=prefixes.device).view(prefixes.shape)
        # Several prefixes begin differently, so tokens already read could be reused for only one.
        read, states = last.take(tuple(prefixes[0].tolist())) if len(prefixes) == 1 else (0, [])
        if not read:
            return reader.read_prefixes(prefixes), places
        if read == prefixes.shape[1]:
            return states, places
        past = gathered(states, places[:, :read], kept=True)
        return joined([states, reader.read_prefixes(prefixes, past)]), places
    states, places = _read_prefixes(reader, prefixes.prefixes, last)
    missing = prefixes.token_ids.shape[1] - places.shape[1]
    indices = functional.pad(places[prefixes.prefix], (0, missing))
    all_states, stored = [states], len(states[0][0])
    for part in prefixes.parts:
        if not part.read:  # these prefixes are themselves shared beginnings, read above
            continue
        rest = _prompts_of(prefixes, part)
        past = gathered(states, _source(prefixes, part, places), kept=True)
        all_states.append(reader.read_behind(rest, past))
        new = torch.arange(stored, stored + len(rest.prompts) * part.read, device=indices.device)
        positions = rest.position_ids[:, -part.read :]
        indices[part.start : part.end].scatter_(1, positions, new.view(positions.shape))
        stored += len(new)
    return joined(all_states), indices


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """The keys and values of a batch's first columns."""

    states: KeyValues
    source: Int[Tensor, "row column"]

    def past(self, rows: int, *, kept: bool = False) -> Cache:
        """A new cache of these columns, for the batch or for `rows` copies of its only prompt.

        `kept` is whether it also keeps what a pass adds, because other tokens follow.
        """
        return gathered(self.states, self.source.expand(rows, -1), kept=kept)


@torch.no_grad()
def read_start(model: Model, batch: Batch, columns: int) -> PrefixCache:
    """Read a batch's first columns once, without a gradient, for all prompts that share them.

    The model must be `readable_in_parts`. Use it within `model.measuring()`.
    """
    device = batch.token_ids.device
    starts = [
        prompt.token_ids[: max(0, columns - batch.unpadded(row).start)]
        for row, prompt in enumerate(batch.prompts)
    ]
    read: list[tuple[int, ...]] = []
    for start in sorted(starts, key=len, reverse=True):
        if not any(longer[: len(start)] == start for longer in read):
            read.append(start)
    width = safe_width(len(read[0]), device)
    padded = torch.tensor([start + (0,) * (width - len(start)) for start in read], device=device)
    rows = [next(n for n, longer in enumerate(read) if longer[: len(s)] == s) for s in starts]
    # Padding columns, which the attention mask hides, refer to the first token.
    source = torch.tensor(rows, device=device)[:, None] * width + batch.position_ids[:, :columns]
    return PrefixCache(CausalReader(model).read_prefixes(padded), source)


def _prompts_of(batch: SharedBatch, part: BatchPart) -> Batch:
    """A part's prompts as a plain batch, as wide as its longest prompt."""
    prompts = batch.prompts[part.start : part.end]
    width = safe_width(max(len(prompt) for prompt in prompts), batch.token_ids.device)
    columns = (batch.token_ids, batch.attention_mask, batch.position_ids)
    return Batch(prompts, *(tensor[part.start : part.end, -width:] for tensor in columns))


def _source(
    batch: SharedBatch, part: BatchPart, places: Int[Tensor, "prefix position"]
) -> Int[Tensor, "row column"]:
    """The index of the prefix token in each column that is not read again.

    Padding columns, which the attention mask hides, refer to their prefix's first token.
    """
    positions = _prompts_of(batch, part).position_ids[:, : -part.read]
    return places[batch.prefix[part.start : part.end]].gather(1, positions)


def answer_batches(
    model: Model, prompts: Sequence[TokenizedPrompt], *, batch_tokens: int
) -> Iterator[tuple[list[int], Batch]]:
    """Batches of prompts with a common beginning, if that saves enough, or of similar length.

    Yields each batch with the indices of its prompts.
    """
    longest = max((len(prompt) for prompt in prompts), default=0)
    if readable_in_parts(model, longest):
        return shared_batches(model, prompts, batch_tokens=batch_tokens)
    return batches(model, prompts, batch_tokens=batch_tokens)


def read_all(
    model: Model,
    prompts: Sequence[TokenizedPrompt],
    answer_tokens: LookUp,
    budget: TokenBudget,
    *,
    read: Callable[[Predictions], Sequence[_Result]],
) -> list[_Result]:
    """For each prompt, the result of `read` on the model's predictions, without a gradient.

    Use this function within `model.measuring()`. If memory runs out, the remaining prompts are read
    in smaller batches, unless it does on a single prompt (RuntimeError).
    """
    by_index: dict[int, _Result] = {}
    while len(by_index) < len(prompts):
        waiting = [index for index in range(len(prompts)) if index not in by_index]
        left = [prompts[index] for index in waiting]
        last = LastPrefixes()
        for places, batch in answer_batches(model, left, batch_tokens=budget.tokens):
            with unless_memory_ends(budget) as attempt, torch.inference_mode():
                parts = predict_batch(model, batch, answer_tokens, last)
                results = [result for _, predictions in parts for result in read(predictions)]
            if attempt.ended:
                if len(places) == 1:
                    raise torch.OutOfMemoryError("out of memory on a single prompt")
                budget.shrink(batch.token_ids.numel())
                break
            by_index |= zip([waiting[place] for place in places], results, strict=True)
            passed(len(by_index) / len(prompts))
    return [by_index[index] for index in range(len(prompts))]
