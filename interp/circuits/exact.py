"""Exact edge effects: a single reader reads the stream as if one writer had its source output.

1. Each layer is run separately on the streams that its readers would read, one row per writer. This
   gives the queries, keys, values and MLP outputs under each patch.
2. Each edge is one row of a forward pass from that layer on, with one head's query, key or value,
   or the MLP's output, patched. Everything downstream is recomputed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers.cache_utils import Cache

from interp.circuits.graph import EdgeValues, Graph
from interp.circuits.streams import PairStreams, Written, input_by_output, stream_read
from interp.console import passed
from interp.models.cache import KeyValues, runs_in_parts
from interp.models.model import Model
from interp.models.sites import (
    Activation,
    Edit,
    Location,
    View,
    edited,
    locate,
    recorded,
    replaced,
    skipped,
    watched,
)
from interp.patching.exact import answered_from
from interp.patching.passes import Pass, embed, entrance, forward, logit_difference
from interp.reading.budget import TokenBudget, in_chunks

Streams = Float[Tensor, "row token size"]
"""Residual streams from the first differing token on."""


ATTENDED = ("q", "k", "v")


class _EndedError(Exception):
    """A pass has computed everything that is needed of it."""


@dataclass(frozen=True, slots=True)
class ReaderOutputs:
    """Outputs of the readers of one layer and site, for each writer that is patched."""

    site: str
    layer: int
    first: int
    """Index of the first of these readers in the graph."""
    outputs: Float[Tensor, "writer token head size"]


class LayerRuns:
    """Runs parts of a model on given streams, from the first token at which a pair differs."""

    def __init__(self, model: Model, graph: Graph, streams: PairStreams) -> None:
        self._model = model
        self._graph = graph
        self._streams = streams
        self._passes = streams.passes
        self._layers = [layer.module for layer in model.layers]
        self._parts = runs_in_parts(model)

    def alone(
        self,
        layer: int,
        streams: Streams,
        sites: Sequence[str],
        edits: Sequence[tuple[str, Edit]] = (),
        cache: Cache | None = None,
    ) -> dict[str, Activation]:
        """The tensors at the given sites when a layer is run on these streams.

        The pass ends at the last of them, since what follows would cost several times as much. It
        adds the layer's keys and values to `cache`.
        """
        located = {site: locate(self._model, site, layer) for site in sites}
        return self._recorded(layer, streams, located, edits, cache)

    def inputs(
        self, layer: int, streams: Streams, located: Mapping[str, Location]
    ) -> dict[str, Activation]:
        """The inputs of the linear modules at these locations, whose outputs are not computed."""
        entrances = {site: replace(location, end="input") for site, location in located.items()}
        with self.unprojected(located):
            return self._recorded(layer, streams, entrances)

    @contextmanager
    def unprojected(self, located: Mapping[str, Location]) -> Iterator[None]:
        """Within the block, the linear modules at these locations return zeros."""
        with ExitStack() as stack:
            for module in {location.module for location in located.values()}:
                width = input_by_output(module).shape[1]
                stack.enter_context(replaced(module, partial(_zeros, width=width)))
            yield

    def _recorded(
        self,
        layer: int,
        streams: Streams,
        located: Mapping[str, Location],
        edits: Sequence[tuple[str, Edit]] = (),
        cache: Cache | None = None,
    ) -> dict[str, Activation]:
        others = [
            module for index, module in enumerate(self._layers) if index != layer and self._parts
        ]
        waiting = len(located)

        def end(unused: Tensor) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                raise _EndedError

        with (
            suppress(_EndedError),
            skipped(others),
            recorded(located) as values,
            watched(located.values(), end),
        ):
            self._run(layer, streams, edits, cache)
        return values

    def metrics_from(
        self,
        layer: int,
        streams: Streams,
        edits: Sequence[tuple[str, Edit]] = (),
        *,
        before: KeyValues | None = None,
    ) -> Float[Tensor, " row"]:
        """The metric of each row, given the streams that a layer or the final norm reads.

        Whole answers are read behind the layers' keys and values in `before`, or the base prompt's.
        """
        with skipped(self._layers[:layer] if self._parts else []):
            run = self._run(layer, streams, edits)
        logits = answered_from(self._model, self._passes, run, layer, before=before)
        return logit_difference(logits, len(self._passes.pair.answers.positive))

    def outputs(self, layer: int, changes: Written) -> Iterator[ReaderOutputs]:
        """Outputs of a layer's readers if one writer's change, (writer, token, size), is added."""
        graph, shape = self._graph, self._graph.shapes[layer]
        first, mlp = graph.attention_readers(layer).start, graph.attention_readers(layer).stop
        between = shape.mixer and shape.mlp and not shape.parallel
        mixer = ATTENDED if shape.heads else ("attn_out",) * shape.mixer
        stream = self._streams.at("resid_pre", layer)
        before = changes[: graph.writers_before(graph.readers[first])].to(stream)
        direct = [*mixer, *["mlp_out"] * (shape.mlp and not between)]
        tensors = self.alone(layer, stream + before, direct)
        if between:
            own_stream = self._streams.at("resid_mid", layer)
            read = own_stream + changes[: graph.writers_before(graph.readers[mlp])].to(own_stream)
            base = stream.expand(len(read), -1, -1)
            tensors |= self.alone(layer, base, ["mlp_out"], [("resid_mid", lambda unused: read)])
        for site in (*mixer, *["mlp_out"] * shape.mlp):
            outputs = locate(self._model, site, layer).view(tensors[site])
            yield ReaderOutputs(site, layer, first, outputs)
            first += outputs.shape[2]

    def _run(
        self,
        layer: int,
        streams: Streams,
        edits: Sequence[tuple[str, Edit]],
        cache: Cache | None = None,
    ) -> Pass:
        into = locate(self._model, *entrance(self._model, layer))
        base = self._passes.pair.base
        embeddings = streams
        if not self._parts:  # layers before this one are run, though nothing depends on them
            embeddings = embed(self._model, base.token_ids).expand(len(streams), -1, -1)
        located = ((locate(self._model, site, layer), edit) for site, edit in edits)
        with edited((into, lambda unused: streams), *located):
            return forward(
                self._model,
                base,
                embeddings,
                start=self._passes.pair.shared,
                past=self._passes.base.key_values if cache is None else cache,
            )


def writing(view: View, values: Tensor, at: Any = slice(None)) -> Edit:
    """An edit that writes values into a copy of a tensor, at an index of its view."""

    def edit(tensor: Tensor) -> Tensor:
        patched = tensor.clone()
        view(patched)[at] = values
        return patched

    return edit


def _zeros(values: Tensor, *, width: int) -> Tensor:
    return values.new_zeros(*values.shape[:-1], width)


class ExactEdges:
    """Computes the exact effects of one model's edges."""

    def __init__(self, model: Model, graph: Graph, *, budget: TokenBudget) -> None:
        self._model = model
        self._graph = graph
        self._budget = budget

    @torch.no_grad()
    def effects(
        self,
        streams: PairStreams,
        *,
        step: float = 1.0,
        only: Bool[Tensor, "reader writer"] | None = None,
    ) -> EdgeValues:
        """The change in the metric per patched edge, in logits; call within `answers_alone`.

        A patch moves by `step` from the base output (0) to the source output (1). The effects of
        edges that are not in `only` are NaN.
        """
        graph = self._graph
        to_run = graph.edges if only is None else only & graph.edges
        runs = LayerRuns(self._model, graph, streams)
        changes = step * streams.differences
        effects = torch.full(graph.edges.shape, torch.nan, dtype=torch.float64)
        # A pass begins at the layer of its reader.
        costs = to_run.sum(1).cpu() * torch.tensor(
            [graph.layers + 1 - reader.layer for reader in graph.readers]
        )
        for layer in range(graph.layers):
            for readers in runs.outputs(layer, changes):
                for (head, writer), metric in self._metrics(runs, streams, readers, to_run):
                    effects[readers.first + head, writer] = metric
                done = costs[: readers.first + readers.outputs.shape[2]].sum()
                passed(float(done / costs.sum().clamp(min=1)))
        last = streams.at(*stream_read(graph, graph.readers[-1]))
        effects[-1] = runs.metrics_from(graph.layers, last + changes.to(last)).cpu()
        return (effects - streams.passes.metrics[0]).where(to_run, torch.nan)

    def _metrics(
        self,
        runs: LayerRuns,
        streams: PairStreams,
        readers: ReaderOutputs,
        to_run: Bool[Tensor, "reader writer"],
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """Head and writer of each edge into these readers, and the metric with the edge patched."""
        outputs, layer = readers.outputs, readers.layer
        view = locate(self._model, readers.site, layer).view
        base = streams.at("resid_pre", layer)

        def run(chunk: Sequence[tuple[int, int]]) -> list[float]:
            heads, writers = torch.tensor(chunk, device=outputs.device).T
            rows = torch.arange(len(chunk), device=outputs.device)
            edit = writing(view, outputs[writers, :, heads], (rows, slice(None), heads))
            copies = base.repeat(len(chunk), 1, 1)
            metrics: list[float] = runs.metrics_from(layer, copies, [(readers.site, edit)]).tolist()
            return metrics

        mask = to_run[readers.first : readers.first + outputs.shape[2]]
        edges = [(int(head), int(writer)) for head, writer in mask.nonzero().tolist()]
        width = outputs.shape[1]
        for chunk, metrics in in_chunks(
            edges, run, tokens=lambda unused: width, budget=self._budget
        ):
            yield from zip(chunk, metrics, strict=True)
