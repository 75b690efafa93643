"""Running circuits, with activations from the source prompt on all edges outside the circuit.

When a circuit is run, each reader has its own input: the sum of the outputs of all writers, taken
from this run for writers with an edge to the reader, and from the source prompt for all others
(MIB, Mueller et al. 2025). The full circuit has the base prompt's metric; the empty circuit has the
source prompt's.

A circuit restricts the readers at the prompt's tokens. Behind them, the whole model reads whole
answers: their tokens attend to the keys and values that the circuit's run computed for the prompt,
as behind patches and edges. In the empty circuit these are the source prompt's keys and values, as
the base's tokens read its streams; if the two prompts differ in length, its metric is therefore
close to the source prompt's rather than equal.
"""

from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers.cache_utils import Cache

from interp.circuits.choice import Circuit
from interp.circuits.exact import ATTENDED, LayerRuns, writing
from interp.circuits.graph import Graph
from interp.circuits.streams import PairStreams, input_by_output, stream_read, written_by_heads
from interp.console import passed
from interp.models.cache import KeyValues, behind, of_layer
from interp.models.model import Model
from interp.models.sites import Edit, Location, locate
from interp.patching.passes import SiteKey
from interp.reading.budget import TokenBudget, in_chunks


@torch.no_grad()
def circuit_metrics(
    model: Model,
    graph: Graph,
    streams: PairStreams,
    circuits: Sequence[Circuit],
    *,
    budget: TokenBudget,
) -> list[float]:
    """The metric of a pair under each circuit, in logits; call within `answers_alone`.

    Equal circuits are run once. Every layer must have heads (`Graph.check_heads`).
    """
    sources = _source_streams(graph, streams)
    past: KeyValues | None = None
    if streams.passes.pair.answers.ways:
        empty = torch.zeros_like(graph.edges)[None]
        past = _Run(model, graph, streams, sources, empty).source_key_values()

    def run(chunk: Sequence[Circuit]) -> list[float]:
        batch = _Run(model, graph, streams, sources, torch.stack(list(chunk)), past=past)
        in_logits: list[float] = batch.metrics().tolist()
        return in_logits

    per_layer = len(graph.readers) // graph.layers * streams.differences.shape[1]
    keys = [circuit.numpy().tobytes() for circuit in circuits]
    distinct = dict(zip(keys, circuits, strict=True))
    every, metrics = list(distinct.values()), list[float]()
    for _, chunk_metrics in in_chunks(every, run, tokens=lambda unused: per_layer, budget=budget):
        metrics += chunk_metrics
        passed(len(metrics) / len(distinct))
    metric_of = dict(zip(distinct, metrics, strict=True))
    return [metric_of[key] for key in keys]


def _source_streams(graph: Graph, streams: PairStreams) -> dict[SiteKey, Tensor]:
    """The source prompt's residual stream at each site that is read, (token, size)."""
    sources = {}
    for key, reader in {stream_read(graph, reader): reader for reader in graph.readers}.items():
        stream, before = streams.at(*key)[0], graph.writers_before(reader)
        sources[key] = stream + streams.differences[:before].sum(0).to(stream)
    return sources


class _Run:
    """One pass of several circuits; layers into which none of them has an edge are not run."""

    def __init__(
        self,
        model: Model,
        graph: Graph,
        streams: PairStreams,
        sources: Mapping[SiteKey, Tensor],
        circuits: Bool[Tensor, "row reader writer"],
        *,
        past: KeyValues | None = None,
    ) -> None:
        self._model, self._graph = model, graph
        self._streams = streams
        self._sources = sources
        self._layers = LayerRuns(self._model, self._graph, streams)
        self._circuits = circuits
        # The source prompt's keys and values, if whole answers are read behind the prompt.
        self._past = past
        # Each writer's output in this run, minus its output in the source prompt.
        self._kept = streams.differences.new_zeros((len(circuits), *streams.differences.shape))

    def metrics(self) -> Float[Tensor, " row"]:
        graph = self._graph
        self._kept[:, 0] = -self._streams.differences[0]
        before = None if self._past is None else [*self._past]
        for layer in range(graph.layers):
            attended = graph.attention_readers(layer)
            readers = slice(attended.start, attended.stop + 1)
            rows = self._circuits[:, readers].flatten(1).any(1).nonzero().flatten()
            if len(rows):
                cache = self._run_layer(layer, rows)
                if before is not None:  # the circuits' own in these rows, or the source's
                    source = before[layer]
                    keys, values = (part.repeat(len(self._circuits), 1, 1, 1) for part in source)
                    keys[rows], values[rows] = of_layer(cache, layer)
                    before[layer] = keys, values
        last = slice(len(graph.readers) - 1, len(graph.readers))
        sums = self._sums(torch.arange(len(self._circuits)), last, slice(len(graph.writers)))
        stream = self._sources[stream_read(graph, graph.readers[-1])]
        read = stream + sums[:, 0].to(stream)
        return self._layers.metrics_from(graph.layers, read, before=before)

    def source_key_values(self) -> KeyValues:
        """Keys and values (one row) of the base's tokens if readers read the source's streams."""
        row = torch.tensor([0])
        return [of_layer(self._run_layer(layer, row), layer) for layer in range(self._graph.layers)]

    def _sums(
        self, rows: Int[Tensor, " row"], readers: slice, writers: slice
    ) -> Float[Tensor, "row some_readers token size"]:
        """For each reader, the sum of the kept outputs of those writers with an edge to it."""
        sums = []
        for row in rows.tolist():
            chosen, kept = self._circuits[row, readers, writers], self._kept[row, writers]
            used = chosen.any(0)
            if not used.all():
                chosen, kept = chosen[:, used], kept[used.to(kept.device)]
            sums.append(torch.einsum("rw,wts->rts", chosen.to(kept), kept))
        return torch.stack(sums)

    def _run_layer(self, layer: int, rows: Int[Tensor, " row"]) -> Cache:
        """Run a layer for some of the circuits; the cache has its keys and values in these."""
        graph = self._graph
        attended, heads = graph.attention_readers(layer), graph.heads_of(layer)
        mlp, parallel = attended.stop, graph.shapes[layer].parallel
        sums = self._sums(rows, slice(attended.start, mlp + 1), slice(heads.start))
        stream = self._sources["resid_pre", layer]
        read = stream + sums.to(stream)

        def write_heads(z: Tensor) -> Tensor:
            block = self._model.layers[layer]
            before = written_by_heads(block, self._streams.at("z", layer))
            self._keep(rows, heads, written_by_heads(block, z) - before)
            return z

        def read_between(unused: Tensor) -> Tensor:
            of_heads = self._sums(rows, slice(mlp, mlp + 1), heads)[:, 0]
            stream = self._sources["resid_mid", layer]
            return stream + (sums[:, -1] + of_heads).to(stream)

        located = {site: locate(self._model, site, layer) for site in ATTENDED}
        edits = list(self._attended(layer, read[:, :-1], located))
        base = self._streams.at("resid_pre", layer).expand(len(rows), -1, -1)
        passes = self._streams.passes
        cache: Cache = behind(passes.base.key_values, rows=len(rows), tokens=passes.pair.shared)
        with self._layers.unprojected(located):
            if parallel:
                write_heads(self._layers.alone(layer, base, ["z"], edits, cache)["z"])
            else:
                edits += [("z", write_heads), ("resid_mid", read_between)]
                out = self._layers.alone(layer, base, ["mlp_out"], edits, cache)["mlp_out"]
        if parallel:
            out = self._layers.alone(layer, read[:, -1], ["mlp_out"])["mlp_out"]
        change = (out - self._streams.at("mlp_out", layer))[None]
        self._keep(rows, slice(heads.stop, heads.stop + 1), change)
        return cache

    def _attended(
        self,
        layer: int,
        read: Float[Tensor, "row reader token size"],
        located: Mapping[str, Location],
    ) -> Iterator[tuple[str, Edit]]:
        """Queries, keys and values, each head's computed only from its own reader's stream."""
        inputs = self._layers.inputs(layer, read.flatten(0, 1), located)
        first = 0
        for site, location in located.items():
            weight = location.view(input_by_output(location.module)[None])[0]
            last = first + weight.shape[1]
            streams = inputs[site].view(*read.shape)[:, first:last]
            values = torch.einsum("rhti,ihs->rths", streams, weight)
            bias = getattr(location.module, "bias", None)
            if bias is not None:
                values = values + location.view(bias[None, None])
            yield site, writing(location.view, values)
            first = last

    def _keep(
        self, rows: Int[Tensor, " row"], span: slice, change: Float[Tensor, "writer row token size"]
    ) -> None:
        """Record the writers' outputs in this run, given their change from the base prompt."""
        kept = change.to(self._kept) - self._streams.differences[span][:, None]
        self._kept[rows, span] = kept.transpose(0, 1)
