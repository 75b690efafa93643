"""Running circuits, with activations from the source prompt on all edges outside the circuit.

When a circuit is run, each reader has its own input: the sum of the outputs of all writers, taken
from this run for writers with an edge to the reader, and from the source prompt for all others
(MIB, Mueller et al. 2025). The full circuit has the base prompt's metric; the empty circuit has the
source prompt's.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.circuits.choice import Circuit
from interp.circuits.exact import ATTENDED, LayerRuns
from interp.circuits.graph import Graph
from interp.circuits.streams import PairStreams, Writers, input_by_output, stream_read
from interp.console import passed
from interp.models.model import Model
from interp.models.sites import Edit, View, locate
from interp.reading.budget import TokenBudget, in_chunks


class CircuitRuns:
    """Runs circuits of one model."""

    def __init__(self, model: Model, graph: Graph, *, budget: TokenBudget) -> None:
        self._model = model
        self._graph = graph
        self._budget = budget

    @torch.no_grad()
    def metrics(self, streams: PairStreams, circuits: Sequence[Circuit]) -> list[float]:
        """The metric of a pair under each circuit, in logits; call within `answers_alone`.

        Equal circuits are run once.
        """
        readers, tokens = len(self._graph.readers), streams.differences.shape[1]

        def run(chunk: Sequence[Circuit]) -> list[float]:
            own = _Run(self._model, self._graph, streams, torch.stack(list(chunk)))
            found: list[float] = own.metrics().tolist()
            return found

        per_layer = readers // self._graph.layers * tokens
        keys = [circuit.numpy().tobytes() for circuit in circuits]
        distinct = dict(zip(keys, circuits, strict=True))
        chunks = in_chunks(
            list(distinct.values()), run, tokens=lambda unused: per_layer, budget=self._budget
        )
        metrics: list[float] = []
        for _, own in chunks:
            metrics += own
            passed(len(metrics) / len(distinct))
        found = dict(zip(distinct, metrics, strict=True))
        return [found[key] for key in keys]


class _Run:
    """One forward pass of several circuits, layer by layer."""

    def __init__(
        self,
        model: Model,
        graph: Graph,
        streams: PairStreams,
        circuits: Bool[Tensor, "row reader writer"],
    ) -> None:
        self._model, self._graph = model, graph
        self._writers = Writers(model, graph)
        self._streams = streams
        self._layers = LayerRuns(self._model, self._graph, streams)
        self._circuits = circuits.to(streams.differences)
        # Each writer's output in this run, minus its output in the source prompt.
        self._kept = streams.differences.new_zeros((len(circuits), *streams.differences.shape))

    def metrics(self) -> Float[Tensor, " row"]:
        graph = self._graph
        self._kept[:, 0] = -self._streams.differences[0]
        for layer in range(graph.layers):
            rows = graph.attention_readers(layer)
            mlp = graph.mlp_reader(layer)
            read = self._read(slice(rows.start, mlp + graph.parallel))
            self._write_heads(layer, read[:, : rows.stop - rows.start])
            if graph.parallel:
                self._write_mlp(layer, read[:, -1], "resid_pre")
            else:
                self._write_mlp(layer, self._read(slice(mlp, mlp + 1))[:, 0], "resid_mid")
        last = self._read(slice(len(graph.readers) - 1, len(graph.readers)))
        return self._layers.metrics_from(graph.layers, last[:, 0])

    def _read(self, rows: slice) -> Float[Tensor, "row some_readers token size"]:
        """Inputs of the readers at one point in the stream."""
        reader = self._graph.readers[rows.start]
        before = self._graph.writers_before(reader)
        stream = self._streams.at(*stream_read(self._graph, reader))
        source = stream[0] + self._streams.differences[:before].sum(0).to(stream)
        chosen = self._circuits[:, rows, :before]
        kept = torch.einsum("crw,cwts->crts", chosen, self._kept[:, :before])
        return source + kept.to(stream)

    def _write_heads(self, layer: int, read: Float[Tensor, "row reader token size"]) -> None:
        graph = self._graph
        edits = [
            (site, _writing(view, values)) for site, view, values in self._attended(layer, read)
        ]
        base = self._streams.at("resid_pre", layer).expand(len(read), -1, -1)
        z = self._layers.alone(layer, base, ["z"], edits)["z"]
        own = graph.heads_of(layer)
        before = self._writers.of_heads(layer, self._streams.at("z", layer))
        self._keep(own, self._writers.of_heads(layer, z) - before)

    def _attended(
        self, layer: int, read: Float[Tensor, "row reader token size"]
    ) -> Iterator[tuple[str, View, Float[Tensor, "row token head size"]]]:
        """Queries, keys and values, each head's computed only from its own reader's stream."""
        located = {site: locate(self._model, site, layer) for site in ATTENDED}
        inputs = self._layers.inputs(layer, read.flatten(0, 1), located)
        first = 0
        for site, own in located.items():
            weight = own.view(input_by_output(own.module)[None])[0]
            last = first + weight.shape[1]
            streams = inputs[site].view(*read.shape)[:, first:last]
            values = torch.einsum("rhti,ihs->rths", streams, weight)
            bias = getattr(own.module, "bias", None)
            if bias is not None:
                values = values + own.view(bias[None, None])
            yield site, own.view, values
            first = last

    def _write_mlp(self, layer: int, read: Float[Tensor, "row token size"], site: str) -> None:
        base = self._streams.at("resid_pre", layer).expand(len(read), -1, -1)
        edits = [(site, lambda unused: read)] if site != "resid_pre" else []
        out = self._layers.alone(layer, read if not edits else base, ["mlp_out"], edits)["mlp_out"]
        own = self._graph.mlp_writer(layer)
        before = self._writers.of_mlp(self._streams.at("mlp_out", layer))
        self._keep(slice(own, own + 1), self._writers.of_mlp(out) - before)

    def _keep(self, own: slice, change: Float[Tensor, "writer row token size"]) -> None:
        """Record the writers' outputs in this run, given their change from the base prompt."""
        kept = change.to(self._kept) - self._streams.differences[own][:, None]
        self._kept[:, own] = kept.transpose(0, 1)


def _writing(view: View, values: Tensor) -> Edit:
    def edit(tensor: Tensor) -> Tensor:
        patched = tensor.clone()
        view(patched)[:] = values
        return patched

    return edit
