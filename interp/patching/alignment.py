"""Alignment: which tokens of a prompt correspond to which tokens of its counterpart.

1. Both prompts are cut at the edges of their shared segments and roles.
2. Within each piece, the common beginning is aligned from the left and the common end from the
   right.
3. The parts that differ are aligned token by token if their lengths are equal, and by a policy
   otherwise.

`bring` and `bring_pattern` map activations of the source prompt to the tokens of the base prompt.
Both their input and their output begin at token `start` (0, or the first token that differs); rows
for tokens without a counterpart are zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from interp.choices import Policy
from interp.errors import UserError
from interp.models.precision import wide_type
from interp.prompts.thought import Span
from interp.reading.shared_batches import shared_tokens
from interp.reading.tokens import TokenizedPrompt

_LISTED = 5
"""Largest number of pairs listed in a message."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The correspondence between the tokens of a base prompt and a source prompt."""

    shared: int
    """Number of identical, aligned leading tokens, whose activations cannot differ."""
    sources: tuple[tuple[int, ...], ...]
    """For each base token, the source tokens whose mean activation it is given; empty without a
    counterpart."""
    bases: tuple[tuple[int, ...], ...]
    """For each source token, the base tokens that receive equal shares of the attention to it."""


def align(base: TokenizedPrompt, source: TokenizedPrompt, *, policy: Policy) -> Alignment | None:
    """The alignment of two prompts; None if the policy "all" cannot align them."""
    sources: list[tuple[int, ...]] = []
    bases: list[tuple[int, ...]] = []
    for base_span, source_span in _spans(base, source):
        base_tokens, source_tokens = range(*base_span), range(*source_span)
        if len(base_tokens) == len(source_tokens):
            sources += [(token,) for token in source_tokens]
            bases += [(token,) for token in base_tokens]
        elif policy == "all":
            return None
        elif policy == "mean":
            sources += [tuple(source_tokens)] * len(base_tokens)
            bases += [tuple(base_tokens)] * len(source_tokens)
        else:
            sources += [()] * (len(base_tokens) - 1) + [(source_tokens[-1],)]
            bases += [(base_tokens[-1],)] * len(source_tokens)
    # Exclude the last token, which is always computed because the answer is read there.
    common = min(shared_tokens(base.token_ids, source.token_ids), len(base) - 1, len(source) - 1)
    shared = next((index for index in range(common) if sources[index] != (index,)), common)
    return Alignment(shared, tuple(sources), tuple(bases))


def check_alignments(
    pairs: Sequence[tuple[TokenizedPrompt, TokenizedPrompt]], policy: Policy
) -> None:
    """Check that the policy aligns every pair."""
    refused = [pair for pair in pairs if align(*pair, policy=policy) is None]
    if refused:
        raise UserError(refusal(refused, policy))


def refusal(pairs: Sequence[tuple[TokenizedPrompt, TokenizedPrompt]], policy: Policy) -> str:
    """The error message about pairs that a policy cannot align."""
    shown = []
    for base, source in pairs[:_LISTED]:
        first = shared_tokens(base.token_ids, source.token_ids)
        lengths = f"{len(base)} and {len(source)} tokens"
        shown.append(f"{base.prompt.pair_id} ({lengths}, first difference at token {first})")
    listed = "; ".join(shown)
    more = f"; and {len(pairs) - _LISTED} more" if len(pairs) > _LISTED else ""
    return (
        f"{len(pairs)} pairs differ in spans with unequal numbers of tokens, which the policy "
        f"{policy!r} does not align: {listed}{more}. Use the policy last or mean, or pairs of "
        "equal length"
    )


def _spans(base: TokenizedPrompt, source: TokenizedPrompt) -> Iterator[tuple[Span, Span]]:
    """Pairs of corresponding token ranges, from first to last."""
    for (start, other_start), (end, other_end) in pairwise(_cuts(base, source)):
        base_ids, source_ids = base.token_ids[start:end], source.token_ids[other_start:other_end]
        left = shared_tokens(base_ids, source_ids)
        right = shared_tokens(base_ids[left:][::-1], source_ids[left:][::-1])
        if len(base_ids) != len(source_ids) and left + right == min(len(base_ids), len(source_ids)):
            # One prompt merely adds tokens: group them with an adjacent token that both prompts
            # contain.
            left, right = (left, right - 1) if right else (left - 1, right)
        edges = [start, start + left, end - right, end]
        other_edges = [other_start, other_start + left, other_end - right, other_end]
        yield from zip(pairwise(edges), pairwise(other_edges), strict=True)


def _cuts(base: TokenizedPrompt, source: TokenizedPrompt) -> list[tuple[int, int]]:
    """Positions at which to cut the two prompts into corresponding, non-empty pieces."""
    base_spans, source_spans = {**base.segments, **base.roles}, {**source.segments, **source.roles}
    edges = [
        edge
        for name in base_spans.keys() & source_spans.keys()
        for edge in zip(base_spans[name], source_spans[name], strict=True)
    ]
    cuts = [(0, 0)]
    for in_base, in_source in sorted(edges):
        if cuts[-1][0] < in_base < len(base) and cuts[-1][1] < in_source < len(source):
            cuts.append((in_base, in_source))
    return [*cuts, (len(base), len(source))]


def bring(
    source: Float[Tensor, "source head size"], alignment: Alignment, *, start: int
) -> Float[Tensor, "base head size"]:
    """The activation for each base token: that of its counterpart, or the mean over several."""
    weights = _shares(alignment.sources, len(alignment.bases), source)[start:, start:]
    return torch.einsum("bs,shd->bhd", weights, source)


def bring_pattern(
    source: Float[Tensor, "head query key"], alignment: Alignment, *, start: int
) -> Float[Tensor, "head base base_key"]:
    """The attention weights that each base token is given, over all tokens of the base prompt.

    The source prompt's attention to a token is moved to the corresponding base tokens. Attention to
    tokens after the query, which may result from the policy "mean", is dropped, and the row is
    rescaled so that its sum does not change.
    """
    queries = _shares(alignment.sources, len(alignment.bases), source)[start:, start:]
    keys = _shares(alignment.bases, len(alignment.sources), source)
    written = torch.einsum("bs,hst,tk->hbk", queries, source, keys)
    kept = written.tril(start)
    scale = written.sum(-1, keepdim=True) / kept.sum(-1, keepdim=True)
    return torch.where(scale.isfinite(), kept * scale, kept)


def _shares(
    members: Sequence[Sequence[int]], width: int, values: Tensor
) -> Float[Tensor, "row width"]:
    """Weights of the type of `values`: equal for the members of a row, and 0 for all others."""
    shares = torch.zeros(len(members), width, dtype=wide_type(values.dtype))
    for row, columns in enumerate(members):
        shares[row, list(columns)] = 1 / max(len(columns), 1)
    return shares.to(values)
