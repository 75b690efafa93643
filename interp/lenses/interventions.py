"""Interventions on the residual stream along given directions: swap, projecting out, steering.

Let V hold one or two directions as unit columns, and let c = pinv(V) h be the coordinates of a
token's stream h. The change of h is

- swap: V (c reversed - c), which exchanges the two coordinates;
- project: -V c, which leaves nothing of the directions;
- add: |h| v, which steers along a single direction.

A dose multiplies the change; what is orthogonal to the directions stays. A placebo adds a random
direction with the norm of the change, token by token. (Gurnee et al. 2026, "Verbalizable
representations form a global workspace in language models", Section 5.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import UserError
from interp.models.model import Model
from interp.models.sites import LocatedEdit, locate
from interp.patching.cells import PatchingPair
from interp.patching.exact import ExactRows
from interp.patching.passes import PairPasses

Change = Literal["swap", "project", "add"]

COLLINEAR = 1e-3
"""Two directions whose smaller singular value is less than this share of the larger are refused:
their coordinates would be differences of huge numbers."""

Streams = Float[Tensor, "token width"]


@dataclass(frozen=True, slots=True)
class Directions:
    """One or two directions of the residual stream, and their coordinates."""

    unit: Float[Tensor, "width direction"]
    """V: the directions as unit columns."""
    inverse: Float[Tensor, "direction width"]
    """pinv(V), whose product with a stream is its coordinates."""

    @classmethod
    def of(cls, rows: Float[Tensor, "direction width"]) -> "Directions":
        """The directions of vectors of any length, in float64."""
        wide = rows.double()
        norms = wide.norm(dim=1, keepdim=True)
        if not bool((torch.isfinite(norms) & (norms > 0)).all()):
            raise UserError("a direction is zero or not finite, so nothing can be changed along it")
        unit = (wide / norms).T
        sizes = torch.linalg.svdvals(unit)
        if float(sizes[-1]) < COLLINEAR * float(sizes[0]):
            raise UserError(
                "the two directions are nearly the same (their singular values differ by more than "
                f"a factor of {1 / COLLINEAR:,.0f}), so their coordinates mean nothing; expected "
                "words that the model says in different contexts"
            )
        return cls(unit, torch.linalg.pinv(unit))

    def coordinates(self, streams: Streams) -> Float[Tensor, "token direction"]:
        """The coordinates of each token's stream, in float64."""
        coordinates: Tensor = streams.double() @ self.inverse.to(streams.device).T
        return coordinates

    def along(self, coordinates: Float[Tensor, "token direction"]) -> Streams:
        """The streams with these coordinates that have nothing orthogonal to the directions."""
        streams: Tensor = coordinates @ self.unit.to(coordinates.device).T
        return streams


@dataclass(frozen=True, slots=True)
class Intervention:
    """A change of the stream behind one or more layers, at some tokens, in one pass."""

    kind: Change
    directions: Mapping[int, Directions]
    """The directions, by layer."""
    positions: tuple[int, ...]
    dose: float = 1.0
    seeds: tuple[int, ...] = ()
    """Seeds of its placebos."""

    def change(self, layer: int, streams: Streams, unchanged: Streams) -> Streams:
        """What is added to the streams behind a layer, in float64.

        In several layers, the coordinates of each are set to what they are in the prompt itself,
        changed once: a second exchange would undo the first. `unchanged` are the streams of the
        prompt itself at the positions.
        """
        directions = self.directions[layer]
        count, expected = directions.unit.shape[1], {"swap": 2, "add": 1}.get(self.kind)
        if expected is not None and count != expected:
            raise UserError(f"{self.kind} needs {expected} directions, got {count}")
        if self.kind == "add":
            sizes = streams.double().norm(dim=1, keepdim=True)
            added: Tensor = sizes * directions.unit.T.to(streams.device)
            return self.dose * added
        before = directions.coordinates(unchanged)
        exchanged = before.flip(1) if self.kind == "swap" else torch.zeros_like(before)
        wanted = before + self.dose * (exchanged - before)
        return directions.along(wanted - directions.coordinates(streams))


def placebo(seed: int, norms: Float[Tensor, " token"], like: Streams) -> Streams:
    """What a placebo adds to the streams behind each layer: random directions of these norms."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(like.shape, generator=generator, dtype=torch.float64)
    units = drawn / drawn.norm(dim=1, keepdim=True)
    change: Tensor = norms[:, None] * units.to(like.device)
    return change


_Row = tuple[Intervention, int | None]
"""An intervention, or the placebo with a seed."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The metric, in logits, of a prompt, under interventions and under their placebos."""

    base: float
    changed: tuple[float, ...]
    placebos: tuple[tuple[float, ...], ...]
    """For each intervention, the metric of each draw."""


def intervene(
    engine: ExactRows, model: Model, pair: PatchingPair, interventions: Sequence[Intervention]
) -> Outcomes:
    """Run a prompt under interventions and their placebos, each in a row, or raise a UserError."""
    # A placebo follows its intervention, whose changes' norms it takes.
    order = sorted(range(len(interventions)), key=lambda i: min(interventions[i].directions))
    rows: list[_Row] = [
        (intervention, seed)
        for intervention in (interventions[index] for index in order)
        for seed in (None, *intervention.seeds)
    ]
    layers = sorted({layer for intervention in interventions for layer in intervention.directions})
    keys = [("resid_post", layer) for layer in layers]
    base, metrics = engine.run_edited(
        pair, keys, rows, partial(_edits, model, {}), first=lambda row: min(row[0].positions)
    )
    left, outcomes = iter(metrics), {}
    for index in order:
        outcomes[index] = next(left), tuple(next(left) for _ in interventions[index].seeds)
    each = [outcomes[index] for index in range(len(interventions))]
    return Outcomes(base, tuple(changed for changed, _ in each), tuple(drawn for _, drawn in each))


_Norms = dict[tuple[int, int], Float[Tensor, " _"]]
"""The norms of changes, by identity of the intervention, and layer."""


def _edits(
    model: Model, norms: _Norms, passes: PairPasses, rows: Sequence[_Row], start: int
) -> list[LocatedEdit]:
    """The edits of one pass, which begins at token `start`."""
    edits: list[LocatedEdit] = []
    for layer in sorted({layer for intervention, _ in rows for layer in intervention.directions}):
        values = passes.base.values["resid_post", layer]
        # In an encoder, and for streams side by side, as the edits see them.
        unchanged = values.reshape(1, len(passes.pair.base) - passes.pair.shared, -1)[0]
        edit = partial(
            _changed, norms=norms, layer=layer, rows=rows, start=start, unchanged=unchanged
        )
        edits.append((locate(model, "resid_post", layer), edit))
    return edits


def _changed(
    tensor: Float[Tensor, "row tokens width"],
    *,
    norms: _Norms,
    layer: int,
    rows: Sequence[_Row],
    start: int,
    unchanged: Streams,
) -> Float[Tensor, "row tokens width"]:
    """The streams behind a layer with the changes of each row, whose norms are noted."""
    patched = tensor.clone()
    for number, (intervention, seed) in enumerate(rows):
        if layer in intervention.directions:
            at = torch.tensor(intervention.positions, device=tensor.device)
            streams = tensor[number, at - start]
            if seed is None:
                change = intervention.change(layer, streams, unchanged[at])
                norms[id(intervention), layer] = change.norm(dim=1)
            else:
                change = placebo(seed, norms[id(intervention), layer], streams)
            patched[number, at - start] = (streams.double() + change).to(streams.dtype)
    return patched
