"""What activations, patches, gradients and edges are: plain passes with hooks at named modules.

Nothing here uses the toolkit or another library than PyTorch. Derivatives are central differences.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.conformance.types import Parts, Subject
from tests.zoo.passes import Change, End, Ids, Passes

STEP = 5e-3
"""Steps of differences, as shares of what is moved: the cube root of float32's precision."""


class Reader(NamedTuple):
    """What reads the stream: a norm, the module that reads the norm's output, and its columns."""

    norm: str
    """The paths; that of the norm is empty if the module itself reads the stream."""
    module: str
    own: slice
    reads: int
    """The number of parts (attention or MLP of a layer, in turn) that wrote before."""


class Truth:
    """Plain passes of a subject's model."""

    def __init__(self, subject: Subject, parts: Parts) -> None:
        self.subject, self.parts, self.hf = subject, parts, subject.hf
        self.passes = Passes(subject.hf)
        self.layers: int = len(self.hf.get_submodule(parts.layers))
        self.scale: float = getattr(self.hf.config, parts.scale) if parts.scale else 1.0
        self.places = self._places()

    @torch.no_grad()
    def metric(self, ids: Ids, *changes: Change) -> float:
        """The difference of the two logits."""
        with self.passes.changed(changes):
            return float(self._metrics(torch.tensor([ids])))

    def _metrics(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        return self.subject.metric(logits.double())

    def _places(self) -> dict[tuple[str, int], tuple[str, End, float]]:
        """The module, end and factor of each site that the type has, by site and layer."""
        found: dict[tuple[str, int], tuple[str, End, float]] = {}
        for layer in range(self.layers):
            path, parts = f"{self.parts.layers}.{layer}", self.parts
            found["resid_pre", layer] = path, "input", 1.0
            found["resid_post", layer] = path, "output", 1.0
            if parts.mid:
                found["resid_mid", layer] = f"{path}.{parts.mid}", "input", 1.0
            for site, names in (("attn_out", parts.attention), ("mlp_out", parts.mlp)):
                block, several = self.hf.get_submodule(path), names.split("|")
                for name in [own for own in several if hasattr(block, own.split(".")[0])]:
                    found[site, layer] = f"{path}.{name}", "output", self.scale
        return found

    def read(self, ids: Ids, site: str, layer: int) -> Tensor:
        """A site's values, (token, width)."""
        path, end, factor = self.places[site, layer]
        return factor * self._seen(ids, path, end)

    def _seen(self, ids: Ids, path: str, end: End) -> Tensor:
        seen: list[Tensor] = []

        def keep(tensor: Tensor) -> Tensor:
            seen.append(tensor.reshape(-1, tensor.shape[-1]).clone())
            return tensor

        self.metric(ids, (path, end, keep))
        return seen[0]

    def patched(self, ids: Ids, site: str, layer: int, position: int, vector: Tensor) -> float:
        """The metric when a site is set to a vector at one token.

        The stream between attention and MLP is set where attention adds to it, so that the MLP and
        all that follows read the vector.
        """
        if site == "resid_mid":
            vector = vector - self.read(ids, "resid_pre", layer)[position]
            site = "attn_out"
        path, end, factor = self.places[site, layer]

        def put(tensor: Tensor) -> Tensor:
            changed = tensor.clone()
            changed.view(-1, tensor.shape[-1])[position] = vector.to(tensor) / factor
            return changed

        return self.metric(ids, (path, end, put))

    @torch.no_grad()
    def weights(self, ids: Ids, layer: int) -> Tensor | None:
        """Attention weights by transformers' plain attention, (head, query, key)."""
        with self.passes.eager():
            maps = self.hf(input_ids=torch.tensor([ids]), output_attentions=True).attentions
        # A hybrid lists those of its attention layers, which are its last ones here.
        place = layer - self.layers + len(maps)
        return None if place < 0 or maps[place] is None else maps[place][0]

    @torch.no_grad()
    def gradient(self, ids: Ids) -> Tensor:
        """The metric's derivative with respect to each entry of the embeddings, (token, width)."""
        table = self.hf.get_input_embeddings().weight
        width, step = table.shape[1], STEP * float(table.std())
        moves = step * torch.eye(len(ids) * width, dtype=torch.float64).view(-1, len(ids), width)

        def moved(by: Tensor) -> Tensor:
            change: Change = (self.passes.embedding, "output", partial(torch.add, other=by))
            with self.passes.changed([change]):
                return self._metrics(torch.tensor([ids]).expand(len(by), -1))

        found = [(moved(some) - moved(-some)) / (2 * step) for some in moves.split(128)]
        return torch.cat(found).view(len(ids), width)

    def between(self, ids: Ids, other: Ids, steps: int) -> tuple[float, float]:
        """The change of the metric from another prompt's embeddings to this one's, and an error.

        Returns:
            The change, by two passes, and how far integrals by `steps` plain gradients are from it:
            the larger of the errors of the midpoint and the trapezoid rule.
        """
        embed = self.hf.get_input_embeddings()
        start, end = (embed(torch.tensor([own])).detach() for own in (other, ids))
        change = self.metric(ids) - self.metric(other)

        def slope(point: float) -> float:
            given = torch.lerp(start, end, point).requires_grad_()
            with self.passes.changed([(self.passes.embedding, "output", lambda tensor: given)]):
                (found,) = torch.autograd.grad(self._metrics(torch.tensor([ids])).sum(), given)
            return float((found * (end - start)).sum())

        middles = sum(slope((place + 0.5) / steps) for place in range(steps)) / steps
        even = [slope(place / (steps - 1)) for place in range(steps)]
        trapezoid = (sum(even) - (even[0] + even[-1]) / 2) / (steps - 1)
        return change, max(abs(middles - change), abs(trapezoid - change))

    def edges(self, base: Ids, other: Ids) -> dict[tuple[str, str], float]:
        """First-order effects of edges on the base prompt's metric, by writer and reader.

        An effect is the derivative of the metric with respect to a share of the writer's change
        (from the base prompt to the other) that one reader alone sees, at all tokens.
        """
        found, writers = {}, self._writers(base, other)
        for reader, read in self._readers().items():
            for writer, (change, wrote) in writers.items():
                if wrote < read.reads:
                    up, down = (self._fed(base, read, by * change) for by in (STEP, -STEP))
                    found[writer, reader] = (up - down) / (2 * STEP)
        return found

    def _writers(self, base: Ids, other: Ids) -> dict[str, tuple[Tensor, int]]:
        """Each writer's change, and the number of parts that wrote before."""

        def change(read: Callable[[Ids], Tensor]) -> Tensor:
            return read(other) - read(base)

        found = {"input": (change(partial(self.read, site="resid_pre", layer=0)), -1)}
        for layer in range(self.layers):
            if self.parts.heads:
                path = f"{self.parts.layers}.{layer}.{self.parts.heads_out}"
                z = change(partial(self._seen, path=path, end="input"))
                matrix = self.scale * self.hf.get_submodule(path).weight.detach()
                parts = (own.chunk(self.hf.config.num_attention_heads, 1) for own in (z, matrix))
                for head, (own, columns) in enumerate(zip(*parts, strict=True)):
                    found[f"a{layer}.h{head}"] = own @ columns.T, 2 * layer
            wrote = change(partial(self.read, site="mlp_out", layer=layer))
            found[f"m{layer}"] = wrote, 2 * layer + 1
        return found

    def _readers(self) -> dict[str, Reader]:
        found, parts = {}, self.parts
        for layer in range(self.layers):
            block = f"{parts.layers}.{layer}."
            for kind, of in (("q", "h"), ("k", "kv"), ("v", "kv")) if parts.heads else ():
                module = block + parts.heads.format(kind)
                heads = self.hf.config.num_attention_heads
                size = self._width(block + parts.heads.format("q")) // heads
                for head in range(self._width(module) // size):
                    own = slice(head * size, (head + 1) * size)
                    read = Reader(block + parts.heads_norm, module, own, 2 * layer)
                    found[f"a{layer}.{of}{head}.{kind}"] = read
            norm = block + parts.mlp_norm if parts.mlp_norm else ""
            wrote = 2 * layer + bool(parts.mid)
            found[f"m{layer}"] = Reader(norm, block + parts.mlp_reads, slice(None), wrote)
        found["logits"] = Reader("", parts.final, slice(None), 2 * self.layers)
        return found

    def _width(self, path: str) -> int:
        return int(self.hf.get_submodule(path).out_features)

    def _fed(self, ids: Ids, reader: Reader, moved: Tensor) -> float:
        """The metric if a reader's columns are those that its module gives for a moved stream."""
        if not reader.norm:
            return self.metric(ids, (reader.module, "input", lambda given: given + moved.to(given)))
        norm, module = map(self.hf.get_submodule, (reader.norm, reader.module))
        kept, busy = list[Tensor](), list[bool]()

        def keep(tensor: Tensor) -> Tensor:
            if not busy:
                kept[:] = [tensor]
            return tensor

        def give(output: Tensor) -> Tensor:
            if busy:  # the module's own pass below
                return output
            busy.append(True)
            new = module(norm(kept[0] + moved.to(kept[0])))
            busy.clear()
            changed = output.clone()
            changed[..., reader.own] = (new[0] if isinstance(new, tuple) else new)[..., reader.own]
            return changed

        return self.metric(ids, (reader.norm, "input", keep), (reader.module, "output", give))
