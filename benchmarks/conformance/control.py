"""Negative controls: a library whose numbers are those of another layer, token, edge or prompt."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from benchmarks.conformance.libraries import Edges, Ids, Library, Reduced, Site


def displaced(right: Any) -> type[Library]:
    """An adapter like another, in which everything is taken from a wrong place."""

    class Displaced(right):
        """What every claim must find wrong."""

        def activation(self, ids: Ids, site: Site) -> Tensor:
            turn = {"resid_mid": 1, "resid_post": 2}.get(site.name, 3)
            return super().activation(ids, site).roll(turn, 0)

        def weights(self, ids: Ids, layer: int) -> Tensor:
            return super().weights(ids, layer).roll(1, 0)

        def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
            return float(super().patched(base, other, site, position + 6))

        def gradient(self, ids: Ids) -> tuple[Tensor, Reduced]:
            scores, reduced = super().gradient(ids)
            return scores.roll(1, 0), reduced

        def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
            scores, baseline, steps = super().integrated(ids, other)
            return scores * (scores.abs() < scores.abs().max()), baseline, steps

        def edges(self, base: Ids, other: Ids) -> Edges:
            scores = super().edges(base, other)
            values = list(scores.values())
            return dict(zip(scores, [*values[1:], values[0]], strict=True))

        def together(self, given: Sequence[Ids]) -> list[Tensor]:
            return [own.roll(len(given) - 1, 0) for own in super().together(given)]

        def importance(self, ids: Ids) -> Tensor:
            scores = super().importance(ids)
            return scores.roll(len(scores) // 2, 0)

    return Displaced
