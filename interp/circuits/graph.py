"""The graph of a causal model: writers add to the residual stream, and readers read from it.

Writers are the input embeddings, each head and each MLP; readers are the query of each head, the
key and the value of each key-value head, each MLP, and the logits. There is an edge from each
writer to every reader that reads the stream after it. With grouped-query attention, a key or value
has one reader for all query heads that share it, as in the model itself.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, zeros

from interp.errors import UserError
from interp.models.model import Model
from interp.models.sites import head_count, layer_count, locate

EdgeValues = Float[Tensor, "reader writer"]
"""A value for each edge, with readers and writers in graph order; NaN if there is no edge."""

ReaderSite = Literal["q", "k", "v", "mlp", "logits"]


@dataclass(frozen=True, slots=True)
class Reader:
    """A place that reads the residual stream."""

    site: ReaderSite
    layer: int
    head: int = 0
    """The head of a query, or the key-value head of a key or value."""

    @property
    def name(self) -> str:
        """The name, such as a0.h3.q, a0.kv1.k, m0 or logits."""
        if self.site == "logits":
            return "logits"
        if self.site == "mlp":
            return f"m{self.layer}"
        kind = "h" if self.site == "q" else "kv"
        return f"a{self.layer}.{kind}{self.head}.{self.site}"


@dataclass(frozen=True)
class Graph:
    """Writers, readers and edges of an architecture."""

    layers: int
    heads: int
    key_value_heads: int
    parallel: bool
    """Whether the attention and the MLP of a layer have the same input, as in GPT-NeoX."""

    @classmethod
    def of_edges(cls, edges: Collection[tuple[str, str]]) -> "Graph":
        """The graph with these edges, each given as the names of its writer and reader.

        Raises:
            UserError: the edges are not all edges of a graph.
        """
        writers, readers = ({edge[end] for edge in edges} for end in (0, 1))
        keys = sum(name.startswith("a0.kv") and name.endswith(".k") for name in readers)
        graph = cls(
            layers=sum(name.startswith("m") for name in writers),
            heads=sum(name.startswith("a0.h") for name in writers),
            key_value_heads=keys,
            parallel=("a0.h0", "m0") not in edges,
        )
        names = [
            (graph.writers[w], graph.readers[r].name) for r, w in graph.edges.nonzero().tolist()
        ]
        if not keys or {*names} != {*edges}:
            raise UserError("these are not all the edges of a model; measure every edge")
        return graph

    @cached_property
    def writers(self) -> Sequence[str]:
        """Names of the writers, in the order of writing: input, a0.h0, ..., m0, ..."""
        names = ["input"]
        for layer in range(self.layers):
            names += [f"a{layer}.h{head}" for head in range(self.heads)]
            names.append(f"m{layer}")
        return names

    @cached_property
    def readers(self) -> Sequence[Reader]:
        """The readers, in the order in which they read."""
        return [reader for layer in range(self.layers + 1) for reader in self._readers_of(layer)]

    def _readers_of(self, layer: int) -> Iterator[Reader]:
        if layer == self.layers:
            yield Reader("logits", layer)
            return
        for head in range(self.heads):
            yield Reader("q", layer, head)
        attended: tuple[ReaderSite, ReaderSite] = ("k", "v")
        for site in attended:
            for head in range(self.key_value_heads):
                yield Reader(site, layer, head)
        yield Reader("mlp", layer)

    def attention_readers(self, layer: int) -> slice:
        """The range of a layer's attention readers: queries, then keys, then values."""
        last = self.mlp_reader(layer)
        return slice(last - self.heads - 2 * self.key_value_heads, last)

    def heads_of(self, layer: int) -> slice:
        """The range of a layer's heads among the writers."""
        last = self.mlp_writer(layer)
        return slice(last - self.heads, last)

    def mlp_reader(self, layer: int) -> int:
        """The index of a layer's MLP among the readers."""
        return (layer + 1) * (self.heads + 2 * self.key_value_heads + 1) - 1

    def mlp_writer(self, layer: int) -> int:
        """The index of a layer's MLP among the writers."""
        return (layer + 1) * (self.heads + 1)

    def writers_before(self, reader: Reader) -> int:
        """Number of writers upstream of a reader; these are the first ones in `writers`."""
        attended = reader.site == "mlp" and not self.parallel
        return 1 + reader.layer * (self.heads + 1) + attended * self.heads

    def fed_by(self, reader: Reader) -> range:
        """The writers that a reader feeds directly: heads or an MLP; none for the logits."""
        if reader.site == "logits":
            return range(0)
        if reader.site == "mlp":
            return range(self.mlp_writer(reader.layer), self.mlp_writer(reader.layer) + 1)
        heads = 1 if reader.site == "q" else self.heads // self.key_value_heads
        first = self.heads_of(reader.layer).start + reader.head * heads
        return range(first, first + heads)

    @cached_property
    def edges(self) -> Bool[Tensor, "reader writer"]:
        """Mask of the edges that exist."""
        found = zeros(len(self.readers), len(self.writers)).bool()
        for row, reader in enumerate(self.readers):
            found[row, : self.writers_before(reader)] = True
        return found


def graph_of(model: Model) -> Graph:
    """The graph of a model.

    Raises:
        UserError: the model is an encoder or spread over processes, or its modules are not where
            they are expected.
    """
    if not model.architecture.causal:
        raise UserError(
            f"{model.name} is a {model.kind.name}; edges are defined for causal language models"
        )
    model.check_whole("a graph of edges")
    return Graph(
        layers=layer_count(model),
        heads=head_count(model, "q"),
        key_value_heads=head_count(model, "k"),
        parallel=not _has_stream_between(model),
    )


def _has_stream_between(model: Model) -> bool:
    """Whether the MLP's input includes the output of the layer's attention."""
    try:
        locate(model, "resid_mid", 0)
    except UserError:
        return False
    return True
