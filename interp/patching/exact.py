"""Exact patching: every cell is one row of a forward pass.

1. Cells are skipped if they cannot change the answer, because their activations are equal in both
   prompts or have no path to the answer.
2. The cells of a site and layer are run together, one row per cell, sorted by their first token. A
   set of cells takes one row, which is patched at all of the set's sites and layers at once.

In a causal model (`Grid`), a patch changes nothing before its layer and its token, so a pass begins
at that layer and token, and reuses the base prompt's keys and values for the tokens before it. Each
row is a pass over the whole prompt in an encoder (`WholeGrid`), whose tokens all attend to each
other, and in a causal model that keeps more than keys and values, such as states.

A patched activation is that of the source prompt, even if patches in lower layers would have
changed it. `resid_mid`, the sum of `resid_pre` and `attn_out`, is patched through `attn_out`, which
is replaced by the source's `resid_mid` minus the `resid_pre` of the patched pass (divided by the
model's residual scale).
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.choices import SITES
from interp.console import passed
from interp.models.cache import KeyValues, runs_in_parts
from interp.models.model import Model
from interp.models.sites import (
    Activation,
    LocatedEdit,
    edited,
    layer_count,
    layers_read,
    locate,
    recorded,
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
    embed,
    entrance,
    forward,
    metrics_of,
    run_pair,
    with_answers,
)
from interp.reading.budget import TokenBudget, in_chunks
from interp.reading.readers import reader_of
from interp.reading.tokens import TokenizedPrompt, pad
from interp.scoring.answer_tokens import ContrastTokens

Place = tuple[int, int, int]
"""Row of a forward pass, position in the base prompt, and head (0 without heads)."""

_Row = TypeVar("_Row")

RowToRun = tuple[int, list[int]]
"""Index of a cell that must be run, and the positions at which its patch acts."""


class ExactRows(ABC):
    """Runs cells as rows of forward passes, within a budget of tokens."""

    def __init__(self, model: Model, *, budget: TokenBudget) -> None:
        self._model = model
        self.layers = layer_count(model)
        self.layers_read = layers_read(model)
        self._budget = budget

    @torch.no_grad()
    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell."""
        keys = sorted({(cell.site, cell.layer) for cell in cells})
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            base, source = passes.metrics
            metrics = [base if has_counterpart(pair, cell) else UNDEFINED for cell in cells]
            finished, every = 0, Counter((cell.site, cell.layer) for cell in cells)
            # Passes begin at a cell's layer.
            costs = {key: self.layers + 1 - key[1] for key in keys}
            total_cost = sum(costs[key] * every[key] for key in keys)
            for key in keys:
                for ran, ((index, _), metric) in enumerate(self._run_site(passes, key, cells), 1):
                    metrics[index] = metric
                    passed((finished + ran * costs[key]) / total_cost)
                finished += costs[key] * every[key]
                passed(finished / total_cost)
        return PatchedMetrics(base, source, tuple(metrics))

    @torch.no_grad()
    def patch_sets(self, pair: PatchingPair, sets: Sequence[Sequence[Cell]]) -> list[float]:
        """The metric of a pair under each set of cells, with all cells of a set patched at once.

        Every cell in a set is given the source prompt's activation, regardless of the other cells;
        the rest of the model is computed from these activations. Attention patterns cannot be among
        the cells.
        """
        keys = sorted({(cell.site, cell.layer) for cells in sets for cell in cells})
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            run = partial(self._run_sets, passes)
            width = len(pair.base) - pair.shared
            chunks = in_chunks(sets, run, tokens=lambda unused: width, budget=self._budget)
            return [metric for _, metrics in chunks for metric in metrics]

    @torch.no_grad()
    def run_edited(
        self,
        pair: PatchingPair,
        keys: Sequence[SiteKey],
        rows: Sequence[_Row],
        edits: Callable[[PairPasses, Sequence[_Row], int], Sequence[LocatedEdit]],
        *,
        first: Callable[[_Row], int],
    ) -> tuple[float, list[float]]:
        """The base prompt's metric, and its metric under the edits of each row.

        The pair's source prompt gives nothing. Both passes keep the sites in `keys`; each of the
        `rows` is one row of a pass, whose edits come from the pair's passes, the rows and the token
        at which the pass begins; `first` gives the first token that a row's edits change.
        """
        with self._model.measuring(), self._reading(pair):
            passes = self._run_pair(pair, keys)
            start = self._start(min(map(first, rows), default=0))

            def run(chunk: Sequence[_Row]) -> list[float]:
                located = edits(passes, chunk, start)
                return self._run(passes, located, rows=len(chunk), start=start)

            width = len(pair.base) - start
            chunks = in_chunks(rows, run, tokens=lambda unused: width, budget=self._budget)
            return passes.metrics[0], [metric for _, metrics in chunks for metric in metrics]

    def _run_sets(self, passes: PairPasses, sets: Sequence[Sequence[Cell]]) -> list[float]:
        places: defaultdict[SiteKey, list[Place]] = defaultdict(list)
        for row, cells in enumerate(sets):
            for cell in cells:
                for position in patched_positions(passes.pair, cell, layers=self.layers_read):
                    places[cell.site, cell.layer].append((row, position, cell.head or 0))
        if not places:
            return [passes.metrics[0]] * len(sets)
        written = {key: self._activations(passes, key)[1] for key in places}
        return self._run_places(passes, written, places, rows=len(sets))

    def _run_site(
        self, passes: PairPasses, key: SiteKey, cells: Sequence[Cell]
    ) -> Iterator[tuple[RowToRun, float]]:
        """The cells of a site and layer that can change the answer, with their metrics."""
        base, written = self._activations(passes, key)
        rows = list(_rows_to_run(passes.pair, key, cells, base != written, self.layers_read))
        rows.sort(key=lambda row: row[1][0])

        def run(chunk: Sequence[RowToRun]) -> list[float]:
            places = [
                (row, position, cells[index].head or 0)
                for row, (index, positions) in enumerate(chunk)
                for position in positions
            ]
            return self._run_places(passes, {key: written}, {key: places}, rows=len(chunk))

        width = len(passes.pair.base)
        for chunk, metrics in in_chunks(
            rows, run, tokens=lambda row: width - self._start(row[1][0]), budget=self._budget
        ):
            yield from zip(chunk, metrics, strict=True)

    def _activations(self, passes: PairPasses, key: SiteKey) -> tuple[Written, Written]:
        """The base prompt's activations at a site, and the activations that a patch writes."""
        site, layer = key
        if SITES[site].is_weights:
            return passes.outputs_of_heads(layer)
        return passes.activations(key, locate(self._model, site, layer).view)

    def _run_places(
        self,
        passes: PairPasses,
        written: Mapping[SiteKey, Written],
        places: Mapping[SiteKey, Sequence[Place]],
        *,
        rows: int,
    ) -> list[float]:
        """The metric of each row, from one forward pass with all the given activations written."""
        start = self._start(min(position for spots in places.values() for _, position, _ in spots))
        shared = passes.pair.shared
        edits: list[LocatedEdit] = []
        # Edits that read the residual stream come after edits to the stream itself.
        for key in sorted(places, key=lambda key: SITES[key[0]].beside is not None):
            edits += _edits_at(
                self._model, key, written[key], places[key], start=start, shared=shared
            )
        return self._run(passes, edits, rows=rows, start=start)

    def _start(self, first: int) -> int:
        """The first token that a forward pass must read if `first` is the first patched token."""
        return 0

    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        """A context in which passes return the logits of a pair's answers."""
        return nullcontext()

    @abstractmethod
    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        """Run both prompts once, keeping the sites in `keys` and everything that `_run` needs."""

    @abstractmethod
    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        """The metrics of copies of the base prompt, from one edited pass from token `start` on."""


def _rows_to_run(
    pair: PatchingPair,
    key: SiteKey,
    cells: Sequence[Cell],
    differs: Bool[Tensor, "token head size"],
    layers: int,
) -> Iterator[RowToRun]:
    """The cells of a site and layer whose patch changes something that is read later."""
    by_head = differs.any(-1).tolist()
    for index, cell in enumerate(cells):
        if (cell.site, cell.layer) == key:
            positions = [
                position
                for position in patched_positions(pair, cell, layers=layers)
                if by_head[position - pair.shared][cell.head or 0]
            ]
            if positions:
                yield index, positions


def _edits_at(
    model: Model,
    key: SiteKey,
    written: Written,
    places: Sequence[Place],
    *,
    start: int,
    shared: int,
) -> Iterator[LocatedEdit]:
    """The edits at one site and layer that write activations, given from position `shared` on."""
    site, layer = SITES[key[0]], key[1]
    rows, positions, heads = torch.tensor(places, device=written.device).T
    values = written[positions - shared, heads]
    acting = locate(model, site.patched_at, layer)
    seen: list[Tensor] = []

    if site.beside is not None:
        stream = locate(model, site.beside, layer)
        kept = model.layers[layer].kept

        def see(tensor: Activation) -> Activation:
            seen[:] = [stream.view(tensor)[rows, positions - start, heads]]
            return tensor

        yield stream, see

    def write(tensor: Activation) -> Activation:
        patched = tensor.clone()
        lacking = values - kept * seen[0] if seen else values
        acting.view(patched)[rows, positions - start, heads] = lacking
        return patched

    yield acting, write


def native_grid(model: Model, *, budget: TokenBudget) -> ExactRows:
    """The native backend for a model."""
    return (Grid if model.architecture.causal else WholeGrid)(model, budget=budget)


class Grid(ExactRows):
    """The native backend for causal models: passes begin at the patched layer and token.

    Where the model does not run in parts, a pass reads the whole prompt.
    """

    def __init__(self, model: Model, *, budget: TokenBudget) -> None:
        super().__init__(model, budget=budget)
        self._logits = ExactLogits(model)
        self._parts = runs_in_parts(model)

    def _start(self, first: int) -> int:
        return first if self._parts else 0

    def _reading(self, pair: PatchingPair) -> AbstractContextManager[None]:
        return answers_alone(self._logits, pair.answers)

    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        entrances = [entrance(self._model, layer) for layer in range(self.layers + 1)]
        return run_pair(self._model, pair, [*keys, *entrances])

    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        lowest = min(location.enters for location, _ in edits)
        logits = run_from(self._model, passes, lowest, edits, rows=rows, start=start)
        return metrics_of(logits, passes.pair.answers)


def run_from(
    model: Model,
    passes: PairPasses,
    layer: int,
    edits: Sequence[LocatedEdit],
    *,
    rows: int,
    start: int,
) -> Float[Tensor, "row answer"]:
    """Logits of copies of the base prompt, run with edits from a given layer and token on.

    A model that does not run in parts is run from its first layer and token on.
    """
    base, past = passes.pair.base, passes.base.key_values
    if not runs_in_parts(model):  # from the first layer and token on
        copies = embed(model, base.token_ids).repeat(rows, 1, 1)
        with edited(*edits):
            return forward(model, base, copies, start=0, past=[]).logits
    into = entrance(model, layer)
    unpatched = passes.base.values[into][:, start - passes.pair.shared :].repeat(rows, 1, 1)
    before = [earlier.module for earlier in model.layers[:layer]]
    enter: LocatedEdit = locate(model, *into), lambda unused: unpatched
    with skipped(before), edited(enter, *edits):
        run = forward(model, base, unpatched, start=start, past=past)
    return answered_from(model, passes, run, layer)


def answered_from(
    model: Model, passes: PairPasses, run: Pass, layer: int, *, before: KeyValues | None = None
) -> Float[Tensor, "row answer"]:
    """The logits of the answers in a pass from a layer on.

    Whole texts are read behind the pass; call it after what edits the pass. The pass ran the layers
    from `layer` on; of the keys and values in `before`, those of earlier layers are read (the base
    prompt's if None).
    """
    pair = passes.pair
    if not pair.answers.ways:
        return run.logits
    base = [
        (keys.expand(len(run.logits), -1, -1, -1), values.expand(len(run.logits), -1, -1, -1))
        for keys, values in (passes.base.key_values if before is None else before)
    ]
    ran = run.key_values[len(run.key_values) - (len(base) - layer) :]
    complete = replace(run, key_values=[*base[:layer], *ran])
    return with_answers(model, pair.base, complete, pair.answers).logits


class WholeGrid(ExactRows):
    """The native backend for encoders; logits are the model's own, in its data type."""

    def _run_pair(self, pair: PatchingPair, keys: Sequence[SiteKey]) -> PairPasses:
        passes = []
        for prompt in (pair.base, pair.source):
            with recorded({key: locate(self._model, *key) for key in keys}) as values:
                logits = self._answer_logits(prompt, pair.answers, rows=1)
            passes.append(Pass(values, [], logits))
        return PairPasses(pair, [], *passes)

    def _run(
        self, passes: PairPasses, edits: Sequence[LocatedEdit], *, rows: int, start: int
    ) -> list[float]:
        pair = passes.pair
        with edited(*edits):
            logits = self._answer_logits(pair.base, pair.answers, rows=rows)
        return metrics_of(logits, pair.answers)

    def _answer_logits(
        self, prompt: TokenizedPrompt, answers: ContrastTokens, *, rows: int
    ) -> Float[Tensor, "row answer"]:
        logits = reader_of(self._model).answer_logits(pad(self._model, [prompt] * rows))
        return logits[:, [*answers.positive, *answers.negative]]
