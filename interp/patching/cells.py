"""Cells: what is patched at once, in a pair whose tokens are aligned."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from interp.choices import SITES, Granularity, Policy
from interp.errors import UserError
from interp.models.model import Model
from interp.models.sites import head_count, layer_count
from interp.patching.alignment import Alignment, align, refusal
from interp.patching.groups import Group, groups
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answer_tokens import ContrastTokens

UNDEFINED = math.nan
"""Metric of a cell none of whose tokens has a counterpart."""


@dataclass(frozen=True, slots=True)
class PatchingPair:
    """A base prompt that is run, and a source prompt that activations come from."""

    base: TokenizedPrompt
    source: TokenizedPrompt
    alignment: Alignment
    answers: ContrastTokens
    whole: bool = False
    """Whether each prompt is read at once from its first token, not behind what both share."""

    @classmethod
    def aligned(
        cls,
        base: TokenizedPrompt,
        source: TokenizedPrompt,
        answers: ContrastTokens,
        *,
        policy: Policy,
        whole: bool = False,
    ) -> "PatchingPair":
        """The pair with its tokens aligned.

        Raises:
            UserError: the policy does not align them.
        """
        alignment = align(base, source, policy=policy)
        if alignment is None:
            raise UserError(refusal([(base, source)], policy))
        return cls(base, source, alignment, answers, whole)

    @property
    def shared(self) -> int:
        """Number of leading tokens that are read once for both prompts.

        A classifier's tokens see those after them, so that none are the same to it.
        """
        return 0 if self.whole or self.base.pooled else self.alignment.shared


@dataclass(frozen=True, slots=True)
class Cell:
    """One patch: a site of one layer, and of one head if it has heads, at some base tokens."""

    site: str
    layer: int
    head: int | None
    group: Group


@dataclass(frozen=True, slots=True)
class PatchedMetrics:
    """The metric, in logits, of both prompts and of the base prompt under each patch."""

    base: float
    source: float
    cells: tuple[float, ...]


@runtime_checkable
class Backend(Protocol):
    """What runs patches: this toolkit or another library."""

    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell, exactly."""


def cells_of(
    model: Model,
    prompt: TokenizedPrompt,
    sites: Sequence[str],
    *,
    granularity: Granularity,
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
) -> Iterator[Cell]:
    """The cells of a base prompt: sites, layers, heads and groups of tokens, in this order."""
    chosen = list(groups(prompt, granularity))
    for site in sites:
        own_heads: Sequence[int | None] = [None]
        if SITES[site].heads is not None:
            own_heads = range(head_count(model, site)) if heads is None else heads
        for layer in range(layer_count(model)) if layers is None else layers:
            for head in own_heads:
                for group in chosen:
                    yield Cell(site, layer, head, group)


def has_counterpart(pair: PatchingPair, cell: Cell) -> bool:
    """Whether any token of a cell has a counterpart in the source prompt."""
    return any(pair.alignment.sources[position] for position in cell.group.positions)


def patched_positions(pair: PatchingPair, cell: Cell, *, layers: int) -> list[int]:
    """The base positions of a cell at which a patch can change the answer.

    That leaves out tokens without counterpart, tokens before the first difference, and tokens of
    the last layer that no other token reads.
    """
    answer = pair.base.answer_position
    unread = cell.layer == layers - 1 and not SITES[cell.site].read_by_later
    return [
        position
        for position in cell.group.positions
        if position >= pair.shared
        and pair.alignment.sources[position]
        and (position == answer or not unread)
    ]
