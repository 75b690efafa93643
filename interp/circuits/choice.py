"""Circuits: sets of edges chosen by score, at the sizes used by MIB (Mueller et al. 2025).

`top` selects the edges with the largest scores. `greedy` starts at the logits and repeatedly adds
the highest-scoring edge into a reader that has already been reached. All circuits are pruned to the
edges on paths from the input to the logits. A larger circuit contains all smaller circuits from the
same ranking.
"""

import hashlib
import heapq
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from interp.circuits.graph import EdgeValues, Graph
from interp.errors import UserError, shortened

Circuit = Bool[Tensor, "reader writer"]
"""A mask of the edges that belong to a circuit."""

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Sizes of circuits before pruning, as shares of all edges (MIB)."""

RANDOM = "random"
"""Method name for circuits chosen by random scores."""

DRAWS = 5
"""Number of random rankings."""


Order = Int[Tensor, " edge"]
"""Edges in the order in which circuits take them, as indices into the flattened mask."""


def top_order(graph: Graph, scores: EdgeValues) -> Order:
    """The edges, largest absolute scores first."""
    sizes = scores.abs().where(graph.edges, -torch.inf).flatten()
    return sizes.argsort(descending=True, stable=True)[: int(graph.edges.sum())]


def greedy_order(graph: Graph, scores: EdgeValues) -> Order:
    """The edges as a greedy search from the logits adds them, largest absolute scores first."""
    sizes = scores.abs().tolist()
    readers_of = _readers_of_writers(graph)
    order: list[int] = []
    queue: list[tuple[float, int, int]] = []
    reached: set[int] = set()

    def reach(rows: Sequence[int]) -> None:
        for row in rows:
            if row not in reached:
                reached.add(row)
                for writer in range(graph.writers_before(graph.readers[row])):
                    heapq.heappush(queue, (-sizes[row][writer], row, writer))

    reach([len(graph.readers) - 1])
    while queue:
        _, row, writer = heapq.heappop(queue)
        order.append(row * len(graph.writers) + writer)
        reach(readers_of[writer])
    return torch.tensor(order)


def first_edges(graph: Graph, order: Order, edges: int) -> Circuit:
    """The circuit of the first edges in an order."""
    chosen = torch.zeros(graph.edges.numel(), dtype=torch.bool)
    chosen[order[:edges]] = True
    return chosen.view(graph.edges.shape)


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
    """The readers that determine each writer's output; none for the input."""
    readers_of: list[list[int]] = [[] for _ in graph.writers]
    for row, reader in enumerate(graph.readers):
        for writer in graph.fed_by(reader):
            readers_of[writer].append(row)
    return readers_of


CHOICES = {"greedy": greedy_order, "top": top_order}
"""Ways to order edges by their scores."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A circuit, and how it was chosen."""

    method: str
    """The method whose effects are used as scores, or `RANDOM`."""
    choice: str
    draw: int
    """The index of the random ranking; 0 for a method."""
    share: float
    """The share of all edges that was chosen before pruning."""
    circuit: Circuit


def chosen_circuits(graph: Graph, scores: Mapping[str, EdgeValues]) -> Iterator[Chosen]:
    """Circuits of each size in `SHARES`: for each method and choice, then for random scores."""
    rankings = [
        (method, choice, 0, values) for method, values in scores.items() for choice in CHOICES
    ]
    for draw in range(DRAWS):
        drawn = torch.rand(graph.edges.shape, generator=torch.Generator().manual_seed(draw))
        rankings.append((RANDOM, "greedy", draw, drawn.double()))
    for method, choice, draw, values in rankings:
        for share, circuit in _by_share(graph, CHOICES[choice](graph, values)):
            yield Chosen(method, choice, draw, share, circuit)


def _by_share(graph: Graph, order: Order) -> Iterator[tuple[float, Circuit]]:
    every = int(graph.edges.sum())
    for share in SHARES:
        yield share, pruned(graph, first_edges(graph, order, int(share * every)))


def mean_scores(graph: Graph, effects: pd.DataFrame) -> dict[str, EdgeValues]:
    """Each edge's mean effect over pairs, for each method, from rows of the edges table."""
    rows = {reader.name: row for row, reader in enumerate(graph.readers)}
    columns = {writer: column for column, writer in enumerate(graph.writers)}
    scores = {}
    for method, edges in effects.groupby("method", sort=False):
        means = edges.groupby(["reader", "writer"], sort=False)["effect"].mean().reset_index()
        values = torch.full(graph.edges.shape, torch.nan, dtype=torch.float64)
        for reader, writer, mean in means.itertuples(index=False, name=None):
            if reader not in rows or writer not in columns:
                raise UserError(
                    f"the model has no edge from {shortened(writer)} to {shortened(reader)}; use "
                    "edges measured on this model"
                )
            values[rows[reader], columns[writer]] = mean
        if missing := int((values.isnan() & graph.edges).sum()):
            raise UserError(
                f"{missing} of {int(graph.edges.sum())} edges have no finite effect by the method "
                f"{method}; circuits are chosen from all edges, so measure every edge, without a "
                "sample"
            )
        scores[str(method)] = values
    return scores


def greedy_members(effects: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The edges of one method's greedy circuits, and the number of query heads that share a key.

    Columns are writer, reader, effect (mean over pairs, in logits) and share (the entry of `SHARES`
    for the smallest circuit that contains the edge).
    """
    ends = effects[["writer", "reader"]].drop_duplicates()
    graph = Graph.of_edges(set(ends.itertuples(index=False, name=None)))
    ((_, scores),) = mean_scores(graph, effects).items()
    shares: dict[tuple[int, int], float] = {}
    for share, circuit in _by_share(graph, greedy_order(graph, scores)):
        for row, writer in circuit.nonzero().tolist():
            shares.setdefault((row, writer), share)
    rows = [
        (graph.writers[writer], graph.readers[row].name, float(scores[row, writer]), share)
        for (row, writer), share in shares.items()
    ]
    table = pd.DataFrame(rows, columns=["writer", "reader", "effect", "share"])
    return table, graph.heads_per_key


def half_of(values: Iterable[str], factor: str) -> Collection[str]:
    """A reproducible random half of a factor's values (rounded up)."""
    distinct = sorted(set(values))
    seed = hashlib.sha256("\n".join([factor, *distinct]).encode()).hexdigest()
    chance = random.Random(seed)
    order = sorted(distinct, key=lambda unused: chance.random())
    return frozenset(order[: -(-len(distinct) // 2)])
