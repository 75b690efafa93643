"""Exact patching: every cell is one row of a forward pass.

1. Both prompts of a pair are run once.
2. Cells that cannot change the answer are not run: their two activations are equal, or nothing that
   leads to the answer reads them.
3. The cells of a site and layer are run together, one row per cell, sorted by their first token.
   A set of cells is one row, patched at all of its sites and layers at once.
4. The logits that each row ends with give its metric.

In a causal model (`Grid`), a patch changes nothing before its layer and its token: a pass begins at
that layer and at that token, after the base prompt's own keys and values. In an encoder
(`WholeGrid`) every token attends to all others, so each row is a pass over the whole prompt.

A patched activation is the source prompt's own, even if patches in lower layers would have
changed it. A site that acts through another one next to the residual stream (`resid_mid`) takes
what it lacks from the stream of the patched pass.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.choices import SITES
from interp.models.architectures import layers_of
from interp.models.model import Model
from interp.models.sites import (
    Activation,
    Edit,
    Location,
    edited,
    layer_count,
    locate,
    recorded,
    residual_scale,
    skipped,
)
from interp.models.unembedding import ExactLogits
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    has_counterpart,
    patched_positions,
)
from interp.patching.passes import (
    PairPasses,
    Pass,
    SiteKey,
    Written,
    answers_alone,
    entrance,
    forward,
    logit_difference,
    run_pair,
)
from interp.reading.budget import TokenBudget, in_chunks
from interp.reading.readers import reader_of
from interp.reading.tokens import TokenizedPrompt, pad
from interp.scoring.answer_tokens import ContrastTokens

LocatedEdit = tuple[Location, Edit]

Place = tuple[int, int, int]
"""Row of a forward pass, position in the base prompt, head (0 if there are none)."""


def places_of(
    pair: PatchingPair, sets: Sequence[Sequence[Cell]], *, layers: int
) -> dict[SiteKey, list[Place]]:
    """The places at which sets of cells, one per row, patch each site and layer."""
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

    Edits that read the residual stream come last, after the edits of the stream itself.
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
    """An edit that writes activations, which begin at position `shared`, at the given places.

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
    """Edits that read the residual stream and add what it lacks of the written one."""
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


@dataclass(frozen=True, slots=True)
class Row:
    """One cell that has to be run."""

    index: int
    """Its place among all cells."""
    positions: list[int]
    head: int | None


class ExactRows(ABC):
    """Runs cells as rows of forward passes with as many tokens as the budget allows."""

    def __init__(self, model: Model, *, budget: TokenBudget) -> None:
        self._model = model
        self.layers = layer_count(model)
        self._budget = budget

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell."""
        keys = sorted({(cell.site, cell.layer) for cell in cells})
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            base, source = passes.metrics
            metrics = [base if has_counterpart(pair, cell) else UNDEFINED for cell in cells]
            for key in keys:
                for row, metric in self._run_site(passes, key, cells):
                    metrics[row.index] = metric
        return PatchedMetrics(base, source, tuple(metrics))

    @torch.no_grad()
    def patch_sets(self, pair: PatchingPair, sets: Sequence[Sequence[Cell]]) -> list[float]:
        """The metric of a pair under each set of cells, with all cells of a set patched at once.

        Every cell holds the activation of the source prompt, whatever the other cells do; the rest
        of the model is computed from the cells. Attention patterns cannot be among the cells.
        """
        keys = sorted({(cell.site, cell.layer) for cells in sets for cell in cells})
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            run = partial(self._run_sets, passes)
            width = len(pair.base) - pair.shared
            chunks = in_chunks(sets, run, tokens=lambda unused: width, budget=self._budget)
            return [metric for _, metrics in chunks for metric in metrics]

    def _run_sets(self, passes: PairPasses, sets: Sequence[Sequence[Cell]]) -> list[float]:
        """The metric of each set, by one forward pass."""
        places = places_of(passes.pair, sets, layers=self.layers)
        if not places:
            return [passes.metrics[0]] * len(sets)
        first = min(position for of_site in places.values() for _, position, _ in of_site)
        start = self._start(first)
        edits = joint_edits(self._model, passes, places, start=start)
        return self._run(passes, edits, rows=len(sets), start=start)

    def _run_site(
        self, passes: PairPasses, key: SiteKey, cells: Sequence[Cell]
    ) -> Iterator[tuple[Row, float]]:
        """The cells of a site and layer that can change the answer, with their metrics."""
        location, base, written = self._acting(passes, *key)
        rows = list(_rows_to_run(passes.pair, key, cells, base != written, self.layers))
        rows.sort(key=lambda row: row.positions[0])

        def run(chunk: Sequence[Row]) -> list[float]:
            start = self._start(chunk[0].positions[0])
            places = [
                (number, position, row.head or 0)
                for number, row in enumerate(chunk)
                for position in row.positions
            ]
            edit = write(location, written, places, start=start, shared=passes.pair.shared)
            return self._run(passes, [(location, edit)], rows=len(chunk), start=start)

        width = len(passes.pair.base)
        for chunk, metrics in in_chunks(
            rows, run, tokens=lambda row: width - self._start(row.positions[0]), budget=self._budget
        ):
            yield from zip(chunk, metrics, strict=True)

    def _acting(
        self, passes: PairPasses, name: str, layer: int
    ) -> tuple[Location, Written, Written]:
        """Where a site acts, the base prompt's activation there, and what a patch writes there."""
        site = SITES[name]
        location = locate(self._model, site.patched_at, layer)
        if site.is_weights:
            return location, *passes.outputs_of_heads(layer)
        view = locate(self._model, name, layer).view
        base, written = passes.activations((name, layer), view)
        if site.beside is not None:
            # The location that acts adds what the stream next to it lacks.
            before = view(passes.base.values[site.beside, layer])[0]
            scale = residual_scale(self._model)
            base, written = (base - before) / scale, (written - before) / scale
        return location, base, written

    @abstractmethod
    def _start(self, first: int) -> int:
        """The first token that a forward pass must read if `first` is the first patched one."""

    @abstractmethod
    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        """The context in which passes give the logits of a pair's answers."""

    @abstractmethod
    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        """Run both prompts once, with the sites of `keys` and what `_run` needs."""

    @abstractmethod
    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metrics of copies of the base prompt from a token on, by one edited forward pass."""


def _rows_to_run(
    pair: PatchingPair,
    key: SiteKey,
    cells: Sequence[Cell],
    differs: Bool[Tensor, "token head size"],
    layers: int,
) -> Iterator[Row]:
    """The cells of a site and layer at which a patch makes a difference that is read later."""
    by_head = differs.any(-1).tolist()
    for index, cell in enumerate(cells):
        if (cell.site, cell.layer) == key:
            positions = [
                position
                for position in patched_positions(pair, cell, layers=layers)
                if by_head[position - pair.shared][cell.head or 0]
            ]
            if positions:
                yield Row(index, positions, cell.head)


class Grid(ExactRows):
    """The native backend of causal models: passes begin at the patched layer and token."""

    def __init__(self, model: Model, *, budget: TokenBudget) -> None:
        super().__init__(model, budget=budget)
        self._logits = ExactLogits(model)

    def _start(self, first: int) -> int:
        return first

    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        return answers_alone(self._logits, pair.answers)

    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        entrances = [entrance(self._model, layer) for layer in range(self.layers + 1)]
        return run_pair(self._model, pair, [*keys, *entrances])

    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metric of each row, by one forward pass from the lowest patched layer on."""
        model, shared = self._model, passes.pair.shared
        lowest = min(location.enters for location, _ in edits)
        into = entrance(model, lowest)
        unpatched = passes.base.values[into][:, start - shared :].repeat(rows, 1, 1)
        with ExitStack() as stack:
            stack.enter_context(skipped(layers_of(model.hf, model.architecture)[:lowest]))
            stack.enter_context(edited(locate(model, *into), lambda unused: unpatched))
            for location, edit in edits:
                stack.enter_context(edited(location, edit))
            passed = forward(model, unpatched, start=start, past=passes.base.key_values)
        metrics = logit_difference(passed.logits, len(passes.pair.answers.positive))
        return [float(metric) for metric in metrics.tolist()]


def native_grid(model: Model, *, budget: TokenBudget) -> ExactRows:
    """The native backend of a model."""
    return (Grid if model.architecture.causal else WholeGrid)(model, budget=budget)


class WholeGrid(ExactRows):
    """The native backend of encoders; logits are the model's, in its data type."""

    def _start(self, first: int) -> int:
        return 0

    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        return nullcontext()

    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        base, source = (self._pass(p, pair.answers, keys) for p in (pair.base, pair.source))
        return PairPasses(pair, [], base, source)

    def _pass(
        self, prompt: TokenizedPrompt, answers: ContrastTokens, keys: Sequence[SiteKey]
    ) -> Pass:
        """Run one prompt, with the sites of `keys`."""
        wanted = {key: locate(self._model, *key) for key in keys}
        with recorded(wanted) as values:
            logits = self._answer_logits(prompt, answers, rows=1)
        return Pass(values, [], logits)

    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metric of each row, by one forward pass over whole prompts."""
        pair = passes.pair
        with ExitStack() as stack:
            for location, edit in edits:
                stack.enter_context(edited(location, edit))
            logits = self._answer_logits(pair.base, pair.answers, rows=rows)
        metrics = logit_difference(logits, len(pair.answers.positive))
        return [float(metric) for metric in metrics.tolist()]

    def _answer_logits(
        self, prompt: TokenizedPrompt, answers: ContrastTokens, *, rows: int
    ) -> Float[Tensor, "row answer"]:
        """Logits of the positive, then negative answers, for copies of one prompt."""
        batch = pad(self._model, [prompt] * rows)
        chosen = torch.tensor([*answers.positive, *answers.negative], device=self._model.device)
        logits = reader_of(self._model).answer_logits(batch)
        return logits[:, chosen.to(logits.device)]
