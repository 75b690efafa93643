"""The graph of a causal model: writers add to the residual stream, and readers read from it.

Writers are the input embeddings, each head and each MLP; readers are the query of each head, the
key and the value of each key-value head, each MLP, and the logits. There is an edge from each
writer to every reader that reads the stream after it. With grouped-query attention, a key or value
has one reader for all query heads that share it, as in the model itself. Where a layer's mixer has
no heads that can be separated, such as a state space or latent attention, the whole mixer is one
writer and one reader.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, zeros

from interp.errors import UserError
from interp.models.layers import Layer
from interp.models.model import Model

EdgeValues = Float[Tensor, "reader writer"]
"""A value for each edge, with readers and writers in graph order; NaN if there is no edge."""

ReaderSite = Literal["q", "k", "v", "mixer", "mlp", "logits"]


@dataclass(frozen=True, slots=True)
class StreamReader:
    """A place that reads the residual stream."""

    site: ReaderSite
    layer: int
    head: int = 0
    """The head of a query, or the key-value head of a key or value."""

    @property
    def name(self) -> str:
        """The name, such as a0.h3.q, a0.kv1.k, a0 (a whole mixer), m0 or logits."""
        if self.site == "logits":
            return "logits"
        if self.site in ("mixer", "mlp"):
            return f"{'a' if self.site == 'mixer' else 'm'}{self.layer}"
        kind = "h" if self.site == "q" else "kv"
        return f"a{self.layer}.{kind}{self.head}.{self.site}"


@dataclass(frozen=True, slots=True)
class Shape:
    """The nodes of one layer."""

    heads: int
    """Number of heads; 0 if the mixer is one node or absent."""
    shared: int
    """Number of key-value heads."""
    mixer: bool = True
    """Whether there is a mixer."""
    mlp: bool = True
    """Whether there is an MLP."""
    parallel: bool = False
    """Whether mixer and MLP have the same input, as in GPT-NeoX."""

    @property
    def mixer_writers(self) -> int:
        """Number of writers of the mixer."""
        return self.heads or int(self.mixer)

    @property
    def mixer_readers(self) -> int:
        """Number of readers of the mixer."""
        return self.heads + 2 * self.shared if self.heads else int(self.mixer)


@dataclass(frozen=True)
class Graph:
    """Writers, readers and edges of a model."""

    shapes: tuple[Shape, ...]
    """The nodes of each layer."""

    @classmethod
    def of_edges(cls, edges: Collection[tuple[str, str]]) -> "Graph":
        """The graph with these edges, each given as the names of its writer and reader."""
        names = {name for edge in edges for name in edge}
        nodes = [match for name in names if (match := _NODE.fullmatch(name))]
        count = 1 + max((int(match[2]) for match in nodes), default=-1)
        shapes = []
        for layer in range(min(count, len(names))):
            of_layer = [match for match in nodes if int(match[2]) == layer]
            kinds = [match[1] + (match[3] or "") + (match[4] or "") for match in of_layer]
            heads = len({match[0] for match in of_layer if match[3] == "h" and not match[4]})
            last = f"a{layer}.h0" if heads else f"a{layer}"
            parallel = (last, f"m{layer}") not in edges
            mixer, mlp = "a" in kinds or heads > 0, "m" in kinds
            shapes.append(Shape(heads, kinds.count("akvk"), mixer, mlp, mixer and mlp and parallel))
        graph = cls(tuple(shapes))
        if not nodes or {*graph.named_edges()} != {*edges}:
            raise UserError("these are not all the edges of a model; measure every edge")
        return graph

    def named_edges(self) -> Iterator[tuple[str, str]]:
        """The names of the writer and the reader of each edge."""
        for reader in self.readers:
            for writer in self.writers[: self.writers_before(reader)]:
                yield writer, reader.name

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.shapes)

    @property
    def heads_per_key(self) -> int:
        """Number of heads that share a key-value head; 1 without heads."""
        return max((shape.heads // shape.shared for shape in self.shapes if shape.heads), default=1)

    def check_heads(self, what: str) -> None:
        """Check that every layer has heads and an MLP, as `what` requires."""
        for layer, shape in enumerate(self.shapes):
            if not shape.heads or not shape.mlp:
                lacking = "MLP" if shape.heads else "heads that can be separated"
                raise UserError(
                    f"{what} need heads and an MLP in every layer, and layer {layer} has no "
                    f"{lacking}; edges can be measured by the methods "
                    "gradient, integrated, activations and exact"
                )

    @cached_property
    def writers(self) -> Sequence[str]:
        """Names of the writers, in the order of writing: input, a0.h0, ..., m0, ..."""
        names = ["input"]
        for layer, shape in enumerate(self.shapes):
            names += [f"a{layer}.h{head}" for head in range(shape.heads)]
            names += [f"a{layer}"] * (shape.mixer and not shape.heads) + [f"m{layer}"] * shape.mlp
        return names

    @cached_property
    def readers(self) -> Sequence[StreamReader]:
        """The readers, in the order in which they read."""
        places: list[StreamReader] = []
        for layer, shape in enumerate(self.shapes):
            shared = shape.shared if shape.heads else 0
            counts: dict[ReaderSite, int] = {"q": shape.heads, "k": shared, "v": shared}
            counts |= {"mixer": shape.mixer and not shape.heads, "mlp": shape.mlp}
            places += [StreamReader(site, layer, n) for site in counts for n in range(counts[site])]
        return [*places, StreamReader("logits", self.layers)]

    @cached_property
    def _first_readers(self) -> Sequence[int]:
        counts = [shape.mixer_readers + shape.mlp for shape in self.shapes]
        return list(accumulate(counts, initial=0))

    @cached_property
    def _first_writers(self) -> list[int]:
        counts = [shape.mixer_writers + shape.mlp for shape in self.shapes]
        return list(accumulate(counts, initial=1))

    def attention_readers(self, layer: int) -> slice:
        """The range of a mixer's readers: heads' or the whole mixer's; the MLP, if any, is next."""
        first = self._first_readers[layer]
        return slice(first, first + self.shapes[layer].mixer_readers)

    def heads_of(self, layer: int) -> slice:
        """The range of writers of a layer's heads or whole mixer; the MLP, if any, is next."""
        first = self._first_writers[layer]
        return slice(first, first + self.shapes[layer].mixer_writers)

    def writers_before(self, reader: StreamReader) -> int:
        """Number of writers upstream of a reader; these are the first ones in `writers`."""
        first = self._first_writers[reader.layer]
        if reader.site == "mlp" and not self.shapes[reader.layer].parallel:
            return first + self.shapes[reader.layer].mixer_writers
        return first

    def fed_by(self, reader: StreamReader) -> range:
        """The writers that a reader feeds directly: heads, a mixer or an MLP; none for logits."""
        if reader.site == "logits":
            return range(0)
        shape, writers = self.shapes[reader.layer], self.heads_of(reader.layer)
        if reader.site == "mlp":
            return range(writers.stop, writers.stop + 1)
        heads = shape.heads // shape.shared if reader.site in ("k", "v") else 1
        first = writers.start + reader.head * heads
        return range(first, first + heads)

    @cached_property
    def edges(self) -> Bool[Tensor, "reader writer"]:
        """Mask of the edges that exist."""
        mask = zeros(len(self.readers), len(self.writers)).bool()
        for row, reader in enumerate(self.readers):
            mask[row, : self.writers_before(reader)] = True
        return mask


_NODE = re.compile(r"([am])(\d{1,4})(?:\.(h|kv)\d{1,5}(?:\.([qkv]))?)?")
"""Names of heads, mixers and MLPs."""


def graph_of(model: Model) -> Graph:
    """The graph of a model."""
    if not model.architecture.causal:
        raise UserError(
            f"{model.name} is a {model.kind.name}; edges are defined for causal language models"
        )
    model.check_whole("a graph of edges")
    for index, layer in enumerate(model.layers):
        reason = layer.lacks.get("attn_out") if not layer.mixer and not layer.mlp else None
        if reason or not layer.adds_up:
            raise UserError(
                f"layer {index} of {model.name} ({model.hf.config.model_type}) has no edges: "
                + (reason or "it scales or norms its residual stream, or adds more than two parts")
                + "; patch resid_pre, which is valid in every architecture"
            )
    return Graph(tuple(map(_shape, model.layers)))


def _shape(layer: Layer) -> Shape:
    parallel = layer.between is None and bool(layer.mixer and layer.mlp)
    heads = None if {"z", "q", "k", "v"} & layer.lacks.keys() else layer.heads
    separate = heads is not None and heads.separate
    return Shape(
        heads=heads.count if heads and separate else 0,
        shared=heads.shared if heads and separate else 0,
        mixer=bool(layer.mixer),
        mlp=bool(layer.mlp),
        parallel=parallel,
    )
