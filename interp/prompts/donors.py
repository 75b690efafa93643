"""Donors: other texts for the segments of a prompt, by which it is measured what a segment does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

DonorKind = Literal["instance", "counterpart"]
"""Another instance of the same template, or the other side of the prompt's own pair."""

DONORS = 8
"""Donors of a prompt from other instances, unless more or fewer are asked for."""


@dataclass(frozen=True, slots=True)
class Donor:
    """Texts that replace segments of a prompt, all from the same place."""

    name: str
    """Where they are from, such as "France/Paris"."""
    kind: DonorKind
    segments: Mapping[str, str]
    """Segment to its text, the same segments for all donors of a prompt."""
    roles: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """Segment to the roles in it, as spans of characters of its text."""

    def record(self) -> list[object]:
        """Everything in it, for hashing."""
        roles = {segment: dict(spans) for segment, spans in self.roles.items()}
        return [self.name, self.kind, dict(self.segments), roles]


DonorSource = Callable[[int], Iterator[Donor]]
"""The instances that may give to the prompt of a number of a `PromptSet`, in the order in which
they are taken: drawn by content and seed, so that neither a limit nor a worker has a part in it."""
