"""The layers that a graft changes, run on streams that the layers before them computed once.

A graft changes only layers from `first` on, so what the layers before them compute for a prompt
never changes in training. All prompts begin with the same tokens, which are read once per step.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import DynamicCache, LlamaForCausalLM, Qwen2ForCausalLM

from interp.extend.training import Progress

TOGETHER = 32
"""Prompts that are read at once."""

Changeable = LlamaForCausalLM | Qwen2ForCausalLM
"""The models that a graft can change, whose layers are called alike."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The residual stream before the first changed layer."""

    beginning: Float[Tensor, "1 shared width"]
    """At the tokens with which all prompts begin."""
    rests: Sequence[Float[Tensor, "_ width"]]
    """At the other tokens of each prompt."""


def read_below(hf: Changeable, token_ids: Sequence[Sequence[int]], *, first: int) -> Streams:
    """The streams of prompts before layer `first`."""
    shared = _shared(token_ids)
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for number, ids in enumerate(token_ids):
        by_length[len(ids)].append(number)
    rests: dict[int, Tensor] = {}
    embed = hf.get_input_embeddings()
    with torch.no_grad(), Progress("read", total=len(token_ids), unit="prompts") as progress:
        beginning = embed(torch.tensor([token_ids[0][:shared]]))
        for numbers in by_length.values():
            for start in range(0, len(numbers), TOGETHER):
                part = numbers[start : start + TOGETHER]
                own = [embed(torch.tensor(token_ids[number][shared:])) for number in part]
                before, last = run(hf, range(first), Streams(beginning, own))
                rests |= zip(part, last, strict=True)
                progress.advance(len(part))
    return Streams(before, [rests[number] for number in range(len(token_ids))])


def _shared(token_ids: Sequence[Sequence[int]]) -> int:
    """The number of tokens with which all prompts begin."""
    columns = zip(*token_ids, strict=False)
    return next(place for place, column in enumerate(columns) if len({*column}) > 1)


def run(
    hf: Changeable, layers: Sequence[int], streams: Streams
) -> tuple[Float[Tensor, "1 shared width"], Float[Tensor, "batch rest width"]]:
    """The streams after some layers; shorter prompts are padded on the left of their rest."""
    shared = streams.beginning.shape[1]
    cache = DynamicCache()
    places = torch.arange(shared)[None]
    beginning = _run(hf, layers, streams.beginning, cache, positions=places)
    cache.batch_repeat_interleave(len(streams.rests))
    longest = max(len(rest) for rest in streams.rests)
    padding = torch.tensor([longest - len(rest) for rest in streams.rests])
    rests = torch.stack(
        [torch.nn.functional.pad(rest, (0, 0, longest - len(rest), 0)) for rest in streams.rests]
    )
    places = torch.arange(longest)
    positions = (shared + places - padding[:, None]).clamp(min=shared)
    visible = _visible(padding, shared, longest)
    return beginning, _run(hf, layers, rests, cache, positions=positions, visible=visible)


def _visible(
    padding: Int[Tensor, " batch"], shared: int, longest: int
) -> Bool[Tensor, "batch 1 longest all"]:
    """Which tokens each token of a rest attends to: those before it that are no padding."""
    places = torch.arange(longest)
    real = places[None, None] >= padding[:, None, None]
    own = (places[None, :, None] >= places[None, None]) & real
    before = torch.ones(len(padding), longest, shared, dtype=torch.bool)
    return torch.cat([before, own], dim=-1)[:, None]


def _run(
    hf: Changeable,
    layers: Sequence[int],
    stream: Float[Tensor, "batch token width"],
    cache: DynamicCache,
    *,
    positions: Int[Tensor, "_ token"],
    visible: Bool[Tensor, "batch 1 token all"] | None = None,
) -> Float[Tensor, "batch token width"]:
    turned = hf.model.rotary_emb(stream, position_ids=positions)
    for number in layers:
        stream = hf.model.layers[number](
            stream,
            attention_mask=visible,
            position_embeddings=turned,
            past_key_values=cache,
            use_cache=True,
        )
    return stream


def last_logits(
    hf: Changeable, stream: Float[Tensor, "batch token width"]
) -> Float[Tensor, "batch vocabulary"]:
    """The logits at the last token of each prompt."""
    # As a matrix, because a product with one token per row copies the unembedding for each row.
    return logits_of(hf, stream[:, -1].contiguous())


def logits_of(
    hf: Changeable, stream: Float[Tensor, "token width"]
) -> Float[Tensor, "token vocabulary"]:
    """The logits at some tokens, from the streams after the last layer."""
    logits: Tensor = hf.lm_head(hf.model.norm(stream))
    return logits.float()


def choice_loss(
    logits: Float[Tensor, "batch vocabulary"],
    words: Sequence[int],
    log_odds: Float[Tensor, " batch"],
) -> Float[Tensor, ""]:
    """The squared error of the log-odds of two words, in nats squared, plus -log P(either word)."""
    one, other = logits[:, words].T
    rest = logits.logsumexp(-1) - torch.logaddexp(one, other)
    loss: Tensor = ((one - other - log_odds) ** 2).mean() + rest.mean()
    return loss
