"""Circuits: sets of edges chosen by score, and the model that runs with only these edges.

In a circuit's run each reader has an input of its own: what the writers with an edge to it write in
this run, and what all other writers write in the source prompt (MIB, Mueller et al. 2025). The full
circuit has the metric of the base prompt, the empty one that of the source.
"""

import heapq
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.circuits.exact import ATTENDED, LayerRuns
from interp.circuits.graph import EdgeValues, Graph
from interp.circuits.streams import PairStreams, Writers, stream_read
from interp.models.model import Model
from interp.models.sites import Edit, View, locate
from interp.reading.budget import TokenBudget, in_chunks

Circuit = Bool[Tensor, "reader writer"]
"""Which edges belong to a circuit."""

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Sizes of circuits as shares of all edges (MIB)."""


def top_circuit(graph: Graph, scores: EdgeValues, edges: int) -> Circuit:
    """The edges with the largest scores, of either sign."""
    sizes = scores.abs().where(graph.edges, -torch.inf).flatten()
    chosen = torch.zeros(sizes.shape, dtype=torch.bool)
    chosen[sizes.argsort(descending=True, stable=True)[:edges]] = True
    return chosen.view(graph.edges.shape)


def greedy_circuit(graph: Graph, scores: EdgeValues, edges: int) -> Circuit:
    """Edges taken from the logits upwards, always the largest score into what is already read."""
    sizes = scores.abs()
    readers_of = _readers_of_writers(graph)
    chosen = torch.zeros(graph.edges.shape, dtype=torch.bool)
    last = len(graph.readers) - 1
    queue: list[tuple[float, int, int]] = []
    reached: set[int] = set()

    def reach(rows: Sequence[int]) -> None:
        for row in rows:
            if row not in reached:
                reached.add(row)
                for writer in range(graph.writers_before(graph.readers[row])):
                    heapq.heappush(queue, (-float(sizes[row, writer]), row, writer))

    reach([last])
    for _ in range(min(edges, int(graph.edges.sum()))):
        if not queue:
            break
        _, row, writer = heapq.heappop(queue)
        chosen[row, writer] = True
        reach(readers_of[writer])
    return chosen


def pruned(graph: Graph, circuit: Circuit) -> Circuit:
    """The edges that lie on a path from the input to the logits within the circuit."""
    kept = circuit.clone()
    for writer, rows in enumerate(_readers_of_writers(graph)):
        if writer and not kept[rows].any():
            kept[:, writer] = False
    for row in reversed(range(len(graph.readers) - 1)):
        if not kept[:, list(graph.fed_by(graph.readers[row]))].any():
            kept[row] = False
    return kept


def _readers_of_writers(graph: Graph) -> list[list[int]]:
    """The readers from which each writer computes its output; none for the input."""
    found: list[list[int]] = [[] for _ in graph.writers]
    for row, reader in enumerate(graph.readers):
        for writer in graph.fed_by(reader):
            found[writer].append(row)
    return found


class CircuitRuns:
    """Runs circuits of one model."""

    def __init__(self, model: Model, graph: Graph, *, budget: TokenBudget) -> None:
        self._model = model
        self._graph = graph
        self._budget = budget
        self._writers = Writers(model, graph)

    @torch.no_grad()
    def metrics(self, streams: PairStreams, circuits: Sequence[Circuit]) -> list[float]:
        """The metric of a pair in each circuit, in logits, within `answers_alone`."""
        readers, tokens = len(self._graph.readers), streams.differences.shape[1]

        def run(chunk: Sequence[Circuit]) -> list[float]:
            found: list[float] = _Run(self, streams, torch.stack(list(chunk))).metrics().tolist()
            return found

        per_layer = readers // self._graph.layers * tokens
        chunks = in_chunks(circuits, run, tokens=lambda unused: per_layer, budget=self._budget)
        return [metric for _, metrics in chunks for metric in metrics]


class _Run:
    """One forward pass of several circuits, layer by layer."""

    def __init__(
        self, runs: CircuitRuns, streams: PairStreams, circuits: Bool[Tensor, "row reader writer"]
    ) -> None:
        self._model, self._graph, self._writers = runs._model, runs._graph, runs._writers
        self._streams = streams
        self._layers = LayerRuns(self._model, self._graph, streams)
        self._circuits = circuits.to(streams.differences)
        # What each writer adds in this run, minus what it adds in the source prompt.
        self._kept = streams.differences.new_zeros(
            (len(self._graph.writers), len(circuits), *streams.differences.shape[1:])
        )

    def metrics(self) -> Float[Tensor, " row"]:
        graph = self._graph
        self._kept[0] = -self._streams.differences[0]
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
        """What readers read that read the stream at the same place."""
        reader = self._graph.readers[rows.start]
        before = self._graph.writers_before(reader)
        stream = self._streams.at(*stream_read(self._graph, reader))
        source = stream[0] + self._streams.differences[:before].sum(0).to(stream)
        chosen = self._circuits[:, rows, :before]
        kept = torch.einsum("crw,wcts->crts", chosen, self._kept[:before])
        return source + kept.to(stream)

    def _write_heads(self, layer: int, read: Float[Tensor, "row reader token size"]) -> None:
        model, graph = self._model, self._graph
        flat = self._layers.alone(layer, read.flatten(0, 1), ATTENDED)
        first = 0
        edits = []
        for site in ATTENDED:
            view = locate(model, site, layer).view
            found = view(flat[site])
            by_reader = found.view(*read.shape[:2], *found.shape[1:])
            heads = torch.arange(by_reader.shape[3], device=read.device)
            read_by_own = by_reader[:, first + heads, :, heads].permute(1, 2, 0, 3)
            edits.append((site, _writing(view, read_by_own)))
            first += len(heads)
        base = self._streams.at("resid_pre", layer).expand(len(read), -1, -1)
        z = self._layers.alone(layer, base, ["z"], edits)["z"]
        own = graph.heads_of(layer)
        before = self._writers.of_heads(layer, self._streams.at("z", layer))
        self._keep(own, self._writers.of_heads(layer, z) - before)

    def _write_mlp(self, layer: int, read: Float[Tensor, "row token size"], site: str) -> None:
        base = self._streams.at("resid_pre", layer).expand(len(read), -1, -1)
        edits = [(site, lambda unused: read)] if site != "resid_pre" else []
        out = self._layers.alone(layer, read if not edits else base, ["mlp_out"], edits)["mlp_out"]
        own = self._graph.mlp_writer(layer)
        before = self._writers.of_mlp(self._streams.at("mlp_out", layer))
        self._keep(slice(own, own + 1), self._writers.of_mlp(out) - before)

    def _keep(self, own: slice, change: Float[Tensor, "writer row token size"]) -> None:
        """Record what writers add in this run, from its difference to what they add in the base."""
        self._kept[own] = change.to(self._kept) - self._streams.differences[own][:, None]


def _writing(view: View, values: Tensor) -> Edit:
    def edit(tensor: Tensor) -> Tensor:
        patched = tensor.clone()
        view(patched)[:] = values
        return patched

    return edit


def random_scores(graph: Graph, seed: int) -> EdgeValues:
    """Scores drawn at random, for circuits that know nothing."""
    return torch.rand(graph.edges.shape, generator=torch.Generator().manual_seed(seed)).double()


def area(shares: Sequence[float], values: Sequence[float]) -> float:
    """The area under values over shares, by trapezoids, from the first share to the last."""
    return float(torch.trapezoid(torch.tensor(values).double(), torch.tensor(shares).double()))
