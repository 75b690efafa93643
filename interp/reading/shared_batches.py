"""Batches of prompts with a common beginning, laid out so that shared tokens are read only once.

1. Prompts are sorted into families with a common beginning. One family's beginning may start with
   that of another. Prompts without a family go into plain batches.
2. A batch consists of whole families, whose prefixes may take up only `PREFIX_SHARE` of the budget.
3. A batch's prompts are split into parts, which are run one at a time and use the same prefixes.
   Within a part, prompts have similar numbers of tokens after the prefix, so few tokens are read
   twice.
4. The prefixes of a batch are themselves laid out in this way if they have a common beginning.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

from interp.models.model import Model
from interp.reading.tokens import Batch, TokenizedPrompt, batches, pad, safe_width

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SamePrefix:
    """Prompts with a common beginning."""

    members: tuple[int, ...]
    """Indices of the prompts, in the order of their tokens."""
    shared: int
    """Number of initial tokens that all members share."""


def families(
    prompts: Sequence[Tokens], *, most: int | None = None, rest: int = 1
) -> Iterator[SamePrefix]:
    """Sort prompts into disjoint families; one family's beginning may start with another's.

    Prompts are sorted by their tokens, which makes them the leaves of a tree of beginnings. From
    the root down, a beginning is used if reading it once saves enough tokens, without those that a
    shorter used beginning already saves. Enough is `SAVED_SHARE` of the tokens after the shorter
    beginning; if there is a shorter one, two passes' worth of tokens also suffice. A prompt belongs
    to its longest used beginning. Prompts without one form a family that shares no tokens. A
    beginning and a whole prompt have together at most `most` tokens; `rest` is the smallest number
    of tokens that a prompt has after those that its family shares.
    """
    order = sorted(range(len(prompts)), key=prompts.__getitem__)
    common = [
        min(shared_tokens(prompts[a], prompts[b]), len(prompts[a]) - rest, len(prompts[b]) - rest)
        for a, b in pairwise(order)
    ]
    beginnings: list[tuple[int, list[int]]] = [(0, [])]
    waiting = [(0, len(order), 0)] if order else []
    while waiting:
        start, end, family = waiting.pop()
        before, members = beginnings[family]
        if end - start == 1:
            members.append(order[start])
            continue
        shared = min(common[start : end - 1])
        lengths = [len(prompts[index]) for index in order[start:end]]
        left = sum(lengths) - before * len(lengths)
        saved = (shared - before) * (len(lengths) - 1)
        fits = most is None or shared + max(lengths) <= most
        enough = SAVED_SHARE * left
        if before:
            enough = min(enough, 2 * PASS_TOKENS)
        if fits and saved >= max(1, enough):
            family = len(beginnings)
            beginnings.append((shared, []))
        borders = [at for at in range(start + 1, end) if common[at - 1] == shared]
        waiting += [(a, b, family) for a, b in pairwise([start, *borders, end])][::-1]
    yield from (SamePrefix(tuple(members), shared) for shared, members in beginnings if members)


def shared_tokens(one: Tokens, other: Tokens) -> int:
    """The number of tokens in the common beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


SAVED_SHARE = 0.1
"""Share of its prompts' remaining tokens that a beginning must save to be read separately. Saving
13% made scoring between 1.06 and 1.2 times as fast on one CPU thread, at hidden sizes of 64 and
256. Small families do not need passes of their own, because all beginnings in a batch are read
together. Below a beginning that is already used, saving two passes' worth of tokens is enough, even
if this is a smaller share; this rule saves 2.5% of the tokens in texts of thoughts."""

PREFIX_SHARE = 0.25
"""Largest share of the budget for a batch's prefixes. On a CPU, one half was equally fast within
noise, but one eighth was between 0.86 and 0.95 times as fast."""

PASS_TOKENS = 32
"""Largest number of tokens that are read twice to save one forward pass. On a CPU, both take about
3 ms (hidden size 256, 4 layers, one thread)."""

CPU_PART_TOKENS = 512
"""Largest number of tokens in a part on a CPU. After a prefix, each token took between 1.06 and
1.17 times as long in passes of about 1,024 tokens as in passes of this size (hidden size 256, 4
layers, one thread)."""


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The prompts in a batch that are run together."""

    start: int
    end: int
    """Half-open range of rows."""
    read: int
    """Number of tokens that are read at the end of each prompt; its prefix contains the others."""


@dataclass(frozen=True, slots=True)
class SharedBatch(Batch):
    """A batch read like any other or, to save tokens, its prefixes first and then its parts."""

    prefixes: "Prefixes"
    """The prefixes of the prompts."""
    prefix: Int[Tensor, " batch"]
    """For each prompt, the row of `prefixes` that it begins with."""
    parts: tuple[BatchPart, ...]
    """Contiguous parts that cover all prompts."""


Prefixes = Int[Tensor, "prefix token"] | SharedBatch
"""Either prefixes that are read whole, padded on the right, or a batch of prefixes that share a
beginning."""


def shared_batches(
    model: Model, prompts: Sequence[TokenizedPrompt], *, batch_tokens: int
) -> Iterator[tuple[list[int], Batch]]:
    """Group prompts within a token budget, by shared tokens if that saves enough, or by length.

    The budget covers a batch's prefixes, including padding, together with its widest part. Prompts
    in a part count at full length, since attention reads the keys and values of all tokens.

    Yields each batch with the indices of its prompts.
    """
    groups = list(families([prompt.token_ids for prompt in prompts], most=batch_tokens))
    alone = sorted(index for family in groups if not family.shared for index in family.members)
    for indices, batch in batches(model, [prompts[i] for i in alone], batch_tokens=batch_tokens):
        yield [alone[index] for index in indices], batch
    sharing = [family for family in groups if family.shared]
    for chunk in _chunks(sharing, prompts, batch_tokens):
        yield _shared_batch(model, prompts, chunk, batch_tokens)


def _chunks(
    sharing: Iterable[SamePrefix], prompts: Sequence[TokenizedPrompt], batch_tokens: int
) -> Iterator[list[SamePrefix]]:
    """The families in each batch: neighbors in sorted order, whose prefixes share the most tokens.

    Padded and counted in full, prefixes fit into the budget together with the longest prompt.
    """
    chunk: list[SamePrefix] = []
    tokens = widest = longest = 0
    before: Tokens = ()
    for family in sorted(sharing, key=lambda family: _prefix(prompts, family)):
        prefix = _prefix(prompts, family)
        new = len(prefix) - shared_tokens(before, prefix)
        length = max(len(prompts[index]) for index in family.members)
        padded = (len(chunk) + 1) * max(widest, len(prefix))
        full = tokens + new > PREFIX_SHARE * batch_tokens
        if chunk and (full or padded + max(longest, length) > batch_tokens):
            yield chunk
            chunk, tokens, widest, longest, new = [], 0, 0, 0, len(prefix)
        chunk.append(family)
        tokens, widest, longest = tokens + new, max(widest, len(prefix)), max(longest, length)
        before = prefix
    if chunk:
        yield chunk


def _prefix(prompts: Sequence[TokenizedPrompt], family: SamePrefix) -> Tokens:
    return prompts[family.members[0]].token_ids[: family.shared]


def _shared_batch(
    model: Model,
    prompts: Sequence[TokenizedPrompt],
    chunk: Sequence[SamePrefix],
    batch_tokens: int,
    *,
    kept: bool = False,
) -> tuple[list[int], SharedBatch]:
    """The prompts of families as one batch; as prefixes (`kept`), with keys and values."""
    beginnings = [
        replace(
            prompts[family.members[0]], token_ids=_prefix(prompts, family), segments={}, roles={}
        )
        for family in chunk
    ]
    order, prefixes = _prefixes(model, beginnings, batch_tokens)
    row_of = {number: row for row, number in enumerate(order)}
    rows = [
        (len(prompts[index]) - family.shared, len(prompts[index]), row_of[number], index)
        for number, family in enumerate(chunk)
        for index in family.members
    ]
    rows.sort()
    suffixes, lengths, numbers, indices = (list(column) for column in zip(*rows, strict=True))
    batch = pad(model, [prompts[index] for index in indices])
    held = stored_tokens(prefixes) + kept * len(rows) * max(suffixes)
    return indices, SharedBatch(
        batch.prompts,
        batch.token_ids,
        batch.attention_mask,
        batch.position_ids,
        prefixes=prefixes,
        prefix=torch.tensor(numbers, device=model.device),
        parts=tuple(_parts(suffixes, lengths, room=batch_tokens - held, device=model.device)),
    )


def _prefixes(
    model: Model, prefixes: Sequence[TokenizedPrompt], batch_tokens: int
) -> tuple[list[int], Prefixes]:
    """The index of the prefix in each row, and the layout of the prefixes."""
    width = safe_width(max(map(len, prefixes)), model.device)
    padding_id = model.tokenizer.pad_token_id or 0
    rows = [prefix.token_ids + (padding_id,) * (width - len(prefix)) for prefix in prefixes]
    padded = torch.tensor(rows, device=model.device)
    common = list(families([prefix.token_ids for prefix in prefixes], rest=0))
    if any(family.shared for family in common):
        alone = [index for family in common if not family.shared for index in family.members]
        chunk = [SamePrefix((index,), len(prefixes[index])) for index in alone]
        chunk += [family for family in common if family.shared]
        order, shared = _shared_batch(model, prefixes, chunk, batch_tokens, kept=True)
        if stored_tokens(shared) + PASS_TOKENS < padded.numel():
            return order, shared
    return list(range(len(prefixes))), padded


def stored_tokens(prefixes: Prefixes) -> int:
    """Number of prefix tokens, including padding, whose keys and values stay in memory."""
    if isinstance(prefixes, Tensor):
        return prefixes.numel()
    read = sum((part.end - part.start) * part.read for part in prefixes.parts)
    return stored_tokens(prefixes.prefixes) + read


def _parts(
    suffixes: Sequence[int], lengths: Sequence[int], *, room: int, device: torch.device
) -> Iterator[BatchPart]:
    """Split rows, sorted by suffix length, where another pass costs less than reading tokens twice.

    In each part, the same number of tokens is read from the end of every prompt. No prompt is
    shorter than this, so padding is never read.
    """
    most = CPU_PART_TOKENS if device.type == "cpu" else room
    start = 0
    for row in range(1, len(suffixes)):
        together = lengths[start : row + 1]
        read_twice = (row - start) * (suffixes[row] - suffixes[row - 1])
        if (
            read_twice > PASS_TOKENS
            or suffixes[row - 1] == 0 < suffixes[row]
            or suffixes[row] > min(together)
            or len(together) * suffixes[row] > most
            or len(together) * max(together) > room
        ):
            yield BatchPart(start, row, suffixes[row - 1])
            start = row
    yield BatchPart(start, len(suffixes), suffixes[-1])
