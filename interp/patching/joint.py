"""Edits of a forward pass that patch cells of several sites and layers at once.

A patched activation is the source prompt's own, also where patches in layers below would have
changed it. A site that acts through another one beside the residual stream (`resid_mid`) takes what
is missing to it from the stream as it is in the patched pass.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from interp.choices import SITES
from interp.models.model import Model
from interp.models.sites import Activation, Edit, Location, locate, residual_scale
from interp.patching.cells import Cell, PatchingPair, patched_positions
from interp.patching.passes import PairPasses, SiteKey, Written

LocatedEdit = tuple[Location, Edit]

Place = tuple[int, int, int]
"""Row of a forward pass, position in the base prompt, head (0 where there are none)."""


def places_of(
    pair: PatchingPair, sets: Sequence[Sequence[Cell]], *, layers: int
) -> dict[SiteKey, list[Place]]:
    """Where sets of cells, one per row, patch each site and layer."""
    places: defaultdict[SiteKey, list[Place]] = defaultdict(list)
    for row, cells in enumerate(sets):
        for cell in cells:
            positions = patched_positions(pair, cell, layers=layers)
            own = [(row, position, cell.head or 0) for position in positions]
            if own:
                places[cell.site, cell.layer] += own
    return dict(places)


def joint_edits(
    model: Model, passes: PairPasses, places: Mapping[SiteKey, Sequence[Place]], *, start: int
) -> list[LocatedEdit]:
    """The edits that write the source's activations at all places, in rows that begin at `start`.

    Those that read the residual stream come last, behind the edits of the stream itself.
    """
    edits: list[LocatedEdit] = []
    shared = passes.pair.shared
    for key in sorted(places, key=lambda key: SITES[key[0]].beside is not None):
        name, layer = key
        location = locate(model, SITES[name].patched_at, layer)
        _, written = passes.activations(key, locate(model, name, layer).view)
        if SITES[name].beside is None:
            edit = write(location, written, places[key], start=start, shared=shared)
            edits.append((location, edit))
        else:
            edits += _beside_stream(model, key, written, places[key], start=start, shared=shared)
    return edits


def write(
    location: Location, written: Written, places: Sequence[Place], *, start: int, shared: int
) -> Edit:
    """An edit that writes activations, which begin at position `shared`, at some places.

    The rows of the forward pass begin at position `start`.
    """
    rows, positions, heads = torch.tensor(places, device=written.device).T
    values = written[positions - shared, heads]

    def edit(tensor: Activation) -> Activation:
        patched = tensor.clone()
        location.view(patched)[rows, positions - start, heads] = values
        return patched

    return edit


def _beside_stream(
    model: Model,
    key: SiteKey,
    written: Written,
    places: Sequence[Place],
    *,
    start: int,
    shared: int,
) -> Iterator[LocatedEdit]:
    """Edits that see the residual stream, and add to it what makes it the written one."""
    name, layer = key
    site, scale = SITES[name], residual_scale(model)
    assert site.beside is not None
    stream, acting = locate(model, site.beside, layer), locate(model, site.patched_at, layer)
    rows, positions, heads = torch.tensor(places, device=written.device).T
    values = written[positions - shared, heads]
    seen: list[Tensor] = []

    def see(tensor: Activation) -> Activation:
        seen[:] = [stream.view(tensor)[rows, positions - start, heads]]
        return tensor

    def edit(tensor: Activation) -> Activation:
        patched = tensor.clone()
        acting.view(patched)[rows, positions - start, heads] = (values - seen[0]) / scale
        return patched

    yield stream, see
    yield acting, edit
