"""Prompts that begin with the same tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Prompts that begin alike."""

    members: tuple[int, ...]
    """Indices of the prompts, in the order of their tokens."""
    shared: int
    """Tokens that all of them begin with."""

    @property
    def saved(self) -> int:
        """Tokens that need not be read if what is shared is read once."""
        return self.shared * (len(self.members) - 1)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Prompts that follow each other in the order of tokens, as the families that save most."""

    start: int
    end: int
    families: tuple[Family, ...]
    saved: int


def families(prompts: Sequence[Tokens], *, rest: int = 1) -> list[Family]:
    """The prompts as families, each prompt in one of them; a family may be a single prompt.

    In the order of their tokens, neighbours that share most are joined first. What is joined
    becomes one family where that saves more tokens than the families on either side.

    Args:
        prompts: the tokens of each.
        rest: the fewest tokens that a prompt has behind what its family shares.
    """
    order = sorted(range(len(prompts)), key=prompts.__getitem__)
    shared = [
        min(shared_tokens(prompts[a], prompts[b]), len(prompts[a]) - rest, len(prompts[b]) - rest)
        for a, b in pairwise(order)
    ]
    alone = [
        _Stretch(at, at + 1, (Family((index,), len(prompts[index]) - rest),), 0)
        for at, index in enumerate(order)
    ]
    starting = {stretch.start: stretch for stretch in alone}
    ending = {stretch.end: stretch for stretch in alone}
    for border in sorted(range(1, len(order)), key=lambda border: -shared[border - 1]):
        joined = _joined(ending.pop(border), starting.pop(border), shared[border - 1], order)
        starting[joined.start] = ending[joined.end] = joined
    return [family for stretch in starting.values() for family in stretch.families]


def shared_tokens(one: Tokens, other: Tokens) -> int:
    """The number of tokens that both begin with."""
    both = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in both if a != b), min(len(one), len(other)))


def _joined(before: _Stretch, after: _Stretch, shared: int, order: Sequence[int]) -> _Stretch:
    start, end = before.start, after.end
    apart = before.saved + after.saved
    # All borders within were joined earlier, so that no two neighbours share less than this.
    together = shared * (end - start - 1)
    if together > apart:
        return _Stretch(start, end, (Family(tuple(order[start:end]), shared),), together)
    return _Stretch(start, end, before.families + after.families, apart)
