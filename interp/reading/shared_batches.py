"""Batches of prompts that begin alike, laid out so that what they share can be read once.

1. Prompts are sorted into families (`interp.reading.prefixes`). Where sharing saves too little,
   they go into plain batches.
2. A batch takes whole families while their prefixes leave most of the budget to the prompts.
3. Its prompts are cut into parts that are run one after the other behind the same prefixes: of
   about as many tokens after the prefix, so that few are read twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from interp.models.model import Model
from interp.reading.prefixes import Family, families
from interp.reading.tokens import Batch, TokenizedPrompt, batches, pad, safe_width

SAVED_SHARE = 0.1
"""Share of a family's tokens that must be saved for it to be read in two steps. Prompts of which
13% was saved were scored 1.06 to 1.2 times as fast, on one CPU thread, at hidden 64 and 256."""

PREFIX_SHARE = 0.25
"""Share of the budget that the prefixes of a batch may take. On a CPU the speed is the same, within
the noise, from an eighth to a half."""

PASS_TOKENS = 128
"""Tokens that may be read twice to spare one more forward pass. On a CPU the speed is the same,
within the noise, from 16 to 512."""


@dataclass(frozen=True, slots=True)
class Part:
    """Prompts of a batch that are run together."""

    start: int
    end: int
    """Half-open range of rows."""
    read: int
    """Tokens at the end of each prompt that are read; those before are in its family's prefix."""


@dataclass(frozen=True, slots=True)
class SharedBatch(Batch):
    """A batch that can be read as any other, or prefix by prefix and then part by part."""

    prefix_ids: Int[Tensor, "family prefix"]
    """The tokens that each family shares, padded on the right."""
    family: Int[Tensor, " batch"]
    """The row of `prefix_ids` that each prompt begins with."""
    parts: tuple[Part, ...]
    """Stretches of the prompts that cover them all."""


def shared_batches(
    model: Model, prompts: Sequence[TokenizedPrompt], *, batch_tokens: int
) -> Iterator[tuple[list[int], Batch]]:
    """Group prompts under a budget of tokens: by what they share where that pays, else by length.

    The budget holds the prefixes of a batch, padding included, together with the widest part:
    its prompts at their full length, since attention reads the keys and values of all tokens.

    Yields the indices of each batch's prompts with the batch.
    """
    sharing = [family for family in families(prompts) if _pays(family, prompts, batch_tokens)]
    others = set(range(len(prompts))).difference(*(family.members for family in sharing))
    alone = sorted(others)
    for indices, batch in batches(model, [prompts[i] for i in alone], batch_tokens=batch_tokens):
        yield [alone[index] for index in indices], batch
    # Prefixes of a batch are about equally long.
    sharing.sort(key=lambda family: (family.shared, family.members))
    for chunk in _chunks(sharing, prompts, batch_tokens):
        yield _shared_batch(model, prompts, chunk, batch_tokens)


def _pays(family: Family, prompts: Sequence[TokenizedPrompt], batch_tokens: int) -> bool:
    lengths = [len(prompts[index]) for index in family.members]
    fits = family.shared + max(lengths) <= batch_tokens
    return fits and family.saved >= SAVED_SHARE * sum(lengths)


def _chunks(
    sharing: Iterable[Family], prompts: Sequence[TokenizedPrompt], batch_tokens: int
) -> Iterator[list[Family]]:
    """Families of one batch, shortest prefixes first."""
    chunk: list[Family] = []
    widest = 0
    for family in sharing:
        own = max(len(prompts[index]) for index in family.members)
        prefixes = (len(chunk) + 1) * family.shared
        full = prefixes > PREFIX_SHARE * batch_tokens
        if chunk and (full or prefixes + max(widest, own) > batch_tokens):
            yield chunk
            chunk, widest = [], 0
        chunk.append(family)
        widest = max(widest, own)
    if chunk:
        yield chunk


def _shared_batch(
    model: Model, prompts: Sequence[TokenizedPrompt], chunk: Sequence[Family], batch_tokens: int
) -> tuple[list[int], SharedBatch]:
    rows = [
        (len(prompts[index]) - family.shared, len(prompts[index]), number, index)
        for number, family in enumerate(chunk)
        for index in family.members
    ]
    rows.sort()
    suffixes, lengths, numbers, indices = (list(column) for column in zip(*rows, strict=True))
    prefix_ids = _prefix_ids(model, prompts, chunk)
    batch = pad(model, [prompts[index] for index in indices])
    return indices, SharedBatch(
        batch.prompts,
        batch.token_ids,
        batch.attention_mask,
        batch.position_ids,
        prefix_ids=prefix_ids,
        family=torch.tensor(numbers, device=model.device),
        parts=tuple(_parts(suffixes, lengths, room=batch_tokens - prefix_ids.numel())),
    )


def _prefix_ids(
    model: Model, prompts: Sequence[TokenizedPrompt], chunk: Sequence[Family]
) -> Int[Tensor, "family prefix"]:
    width = safe_width(max(family.shared for family in chunk), model.device)
    padding_id = model.tokenizer.pad_token_id or 0
    rows = [
        prompts[family.members[0]].token_ids[: family.shared]
        + (padding_id,) * (width - family.shared)
        for family in chunk
    ]
    return torch.tensor(rows, device=model.device)


def _parts(suffixes: Sequence[int], lengths: Sequence[int], *, room: int) -> Iterator[Part]:
    """Cut rows, in the order of their suffixes, where one more pass costs less than the padding.

    No prompt is shorter than what its part reads, so that no padding is ever read.
    """
    start = 0
    for row in range(1, len(suffixes)):
        together = lengths[start : row + 1]
        read_twice = (row - start) * (suffixes[row] - suffixes[row - 1])
        if (
            read_twice > PASS_TOKENS
            or suffixes[row] > min(together)
            or len(together) * max(together) > room
        ):
            yield Part(start, row, suffixes[row - 1])
            start = row
    yield Part(start, len(suffixes), suffixes[-1])
