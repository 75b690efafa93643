"""Cells (the units of patching in a pair of aligned prompts), and control prompts for a pair."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from interp.choices import ALL, SITES, Granularity, Policy
from interp.errors import UserError
from interp.models.model import Model
from interp.models.sites import head_count, layers_with
from interp.patching.alignment import Alignment, align, refusal
from interp.prompts.mixing import donors_of, mixed
from interp.prompts.prompt import Prompt
from interp.reading.tokens import (
    TokenizedPrompt,
    token_roles,
    token_segments,
    tokenize,
    with_answer,
)
from interp.scoring.answer_tokens import ContrastTokens


@dataclass(frozen=True, slots=True)
class Group:
    """Tokens that are patched together."""

    role: str
    positions: tuple[int, ...]
    alone: bool = False
    """Whether the group is a single token that is patched by itself."""


def groups(prompt: TokenizedPrompt, granularity: Granularity) -> Iterator[Group]:
    """The groups of tokens of a prompt, in the order of their first tokens.

    That of the answer stays apart, since patching it in a late layer is patching the answer.
    """
    if granularity == "position":
        for position, role in enumerate(token_roles(prompt)):
            yield Group(role, (position,), alone=True)
        return
    if granularity == "all":
        labels = [ALL] * len(prompt)
    elif granularity == "role":
        labels = token_roles(prompt)
    else:
        labels = with_answer(prompt, token_segments(prompt))
    for label in dict.fromkeys(labels):
        yield Group(label, tuple(index for index, role in enumerate(labels) if role == label))


UNDEFINED = math.nan
"""Metric of a cell in which no token has a counterpart."""


@dataclass(frozen=True, slots=True)
class PatchingPair:
    """The base prompt, which is run, and the source prompt, which supplies activations."""

    base: TokenizedPrompt
    source: TokenizedPrompt
    alignment: Alignment
    answers: ContrastTokens
    whole: bool = False
    """Whether prompts are read from their first token rather than from the first that differs."""

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
        """The pair with its tokens aligned."""
        alignment = align(base, source, policy=policy)
        if alignment is None:
            raise UserError(refusal([(base, source)], policy))
        return cls(base, source, alignment, answers, whole)

    @property
    def shared(self) -> int:
        """Number of leading tokens read once for both prompts; 0 if tokens attend to later ones."""
        return 0 if self.whole or self.base.pooled else self.alignment.shared


@dataclass(frozen=True, slots=True)
class Cell:
    """One patch: a site in one layer, in one head if the site has heads, at some base tokens."""

    site: str
    layer: int
    head: int | None
    group: Group


@dataclass(frozen=True, slots=True)
class PatchedMetrics:
    """The metric, in logits, for the two prompts and for the base prompt under each patch."""

    base: float
    source: float
    cells: tuple[float, ...]


@runtime_checkable
class Backend(Protocol):
    """A backend that runs patches, natively or through another library."""

    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The exact metrics of a pair under each cell."""


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
        for layer in layers_with(model, site) if layers is None else layers:
            for head in own_heads:
                for group in chosen:
                    yield Cell(site, layer, head, group)


def acts_at(cell: Cell) -> tuple[str, int]:
    """The site and layer at which other libraries write a cell."""
    site = SITES[cell.site]
    return (site.name if site.beside is None else site.patched_at), cell.layer


def has_counterpart(pair: PatchingPair, cell: Cell) -> bool:
    """Whether any token of a cell has a counterpart in the source prompt."""
    return any(pair.alignment.sources[position] for position in cell.group.positions)


def patched_positions(pair: PatchingPair, cell: Cell, *, layers: int) -> list[int]:
    """The base positions of a cell at which a patch can change the answer.

    This excludes tokens without a counterpart, tokens before the first difference, and, in the last
    layer, tokens that no other token reads (`sites.layers_read` is the number of layers).
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


def control_of(model: Model, prompt: Prompt) -> tuple[str, TokenizedPrompt]:
    """A donor's name, and the control: a prompt with other entities but the same correct answer.

    Replacing one mention of an entity leaves a prompt whose parts disagree, and a model may react
    to the disagreement itself. Activations of a control cause the same disagreement but do not
    support another answer. The donor is the first from another instance of the prompt's template.
    """
    donors = donors_of(prompt, "instance")
    if not donors:
        raise UserError(
            f"prompt {prompt.id} has no donor from another instance for a control; omit the prompt "
            "or patch without controls"
        )
    (control,) = tokenize(model, [mixed(prompt, donors[0])])
    return donors[0].name, control
