"""What activations, patches, gradients and edges are: plain passes with hooks at named modules.

Nothing here uses the toolkit or another library than PyTorch. Derivatives are central differences.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.conformance.types import Parts, Site, Subject
from tests.zoo.passes import Change, Ids, Passes, first_tensor

STEP = 5e-3
"""Steps of differences, as shares of what is moved: the cube root of float32's precision."""


class Truth:
    """Plain passes of a subject's model."""

    def __init__(self, subject: Subject, parts: Parts) -> None:
        self.subject, self.parts, self.hf = subject, parts, subject.hf
        self.passes = Passes(subject.hf)
        self.layers: int = len(self.hf.get_submodule(parts.layers))
        self.scale: float = getattr(self.hf.config, parts.scale) if parts.scale else 1.0
        self.sites = {(own.name, own.layer): own for own in self._sites()}
        """The sites that the type has, layer by layer."""

    @torch.no_grad()
    def metric(self, ids: Ids, *changes: Change) -> float:
        """The difference of the two logits."""
        with self.passes.changed(changes):
            return float(self._metrics(torch.tensor([ids])))

    def _metrics(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        return self.subject.metric(logits.double())

    def _sites(self) -> Iterator[Site]:
        for layer in range(self.layers):
            path, parts = f"{self.parts.layers}.{layer}", self.parts
            yield Site("resid_pre", layer, path, "input")
            if parts.mid:
                yield Site("resid_mid", layer, f"{path}.{parts.mid}", "input")
            yield Site("resid_post", layer, path)
            for site, names in (("attn_out", parts.attention), ("mlp_out", parts.mlp)):
                block, several = self.hf.get_submodule(path), names.split("|")
                for name in [own for own in several if hasattr(block, own.split(".")[0])]:
                    yield Site(site, layer, f"{path}.{name}", factor=self.scale)

    def activation(self, ids: Ids, site: Site) -> Tensor:
        """A site's values, (token, width)."""
        seen: list[Tensor] = []

        def keep(tensor: Tensor) -> Tensor:
            seen.append(tensor.reshape(-1, tensor.shape[-1]).clone())
            return tensor

        self.metric(ids, (site.path, site.end, keep))
        return site.factor * seen[0]

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        """The metric when a site is that of another prompt at one token.

        The stream between attention and MLP is set where attention adds to it, so that the MLP and
        all that follows read it.
        """
        vector = self.activation(other, site)[position]
        if site.name == "resid_mid":
            vector = vector - self.activation(base, self.sites["resid_pre", site.layer])[position]
            site = self.sites["attn_out", site.layer]

        def put(tensor: Tensor) -> Tensor:
            changed = tensor.clone()
            changed.view(-1, tensor.shape[-1])[position] = vector / site.factor
            return changed

        return self.metric(base, (site.path, site.end, put))

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
        """The change of the metric from another prompt's embeddings, and an integral's error.

        The error is the larger one of the midpoint and the trapezoid rule with so many gradients.
        """
        embed = self.hf.get_input_embeddings()
        start, end = (embed(torch.tensor([own])).detach() for own in (other, ids))
        change = self.metric(ids) - self.metric(other)

        def slope(point: float) -> float:
            given = torch.lerp(start, end, point).requires_grad_()
            with self.passes.changed([(self.passes.embedding, "output", lambda tensor: given)]):
                (found,) = torch.autograd.grad(self._metrics(torch.tensor([ids])).sum(), given)
            return float((found * (end - start)).sum())

        midpoint = sum(slope((place + 0.5) / steps) for place in range(steps)) / steps
        even = torch.tensor([slope(place / (steps - 1)) for place in range(steps)])
        trapezoid = float(torch.trapezoid(even.double(), dx=1 / (steps - 1)))
        return change, max(abs(midpoint - change), abs(trapezoid - change))

    def edges(self, base: Ids, other: Ids) -> dict[tuple[str, str], float]:
        """First-order effects of edges on the base prompt's metric, by writer and reader.

        An effect is the derivative of the metric with respect to a share of the writer's change
        (from the base prompt to the other) that one reader alone sees, at all tokens.
        """
        found, writers = {}, self._writers(base, other)
        for reader, before, *read in self._readers():
            for writer, (change, wrote) in writers.items():
                if wrote < before:
                    up, down = (self._fed(base, by * change, *read) for by in (STEP, -STEP))
                    found[writer, reader] = (up - down) / (2 * STEP)
        return found

    def _writers(self, base: Ids, other: Ids) -> dict[str, tuple[Tensor, int]]:
        """Each writer's change, and the number of parts that wrote before."""

        def change(site: Site) -> Tensor:
            return self.activation(other, site) - self.activation(base, site)

        found = {"input": (change(self.sites["resid_pre", 0]), -1)}
        for layer in range(self.layers):
            if self.parts.heads:
                path = f"{self.parts.layers}.{layer}.{self.parts.heads_out}"
                z = change(Site("z", layer, path, "input"))
                matrix = self.scale * self.hf.get_submodule(path).weight.detach()
                parts = (own.chunk(self.hf.config.num_attention_heads, 1) for own in (z, matrix))
                for head, (own, columns) in enumerate(zip(*parts, strict=True)):
                    found[f"a{layer}.h{head}"] = own @ columns.T, 2 * layer
            found[f"m{layer}"] = change(self.sites["mlp_out", layer]), 2 * layer + 1
        return found

    def _readers(self) -> Iterator[tuple[str, int, str, str, slice]]:
        """The name of what reads the stream, and how many parts (attention or MLP) wrote before.

        Then the paths of a norm (empty if the module itself reads the stream) and of the module
        that reads the norm's output, and this module's columns.
        """
        parts, whole = self.parts, slice(None)
        for layer in range(self.layers):
            block = f"{parts.layers}.{layer}."
            for kind, of in (("q", "h"), ("k", "kv"), ("v", "kv")) if parts.heads else ():
                module, query = (block + parts.heads.format(own) for own in (kind, "q"))
                wide, queries = (self.hf.get_submodule(own).out_features for own in (module, query))
                size = queries // self.hf.config.num_attention_heads
                for head in range(wide // size):
                    own = slice(head * size, (head + 1) * size)
                    norm = block + parts.heads_norm
                    yield f"a{layer}.{of}{head}.{kind}", 2 * layer, norm, module, own
            norm = block + parts.mlp_norm if parts.mlp_norm else ""
            before = 2 * layer + bool(parts.mid)
            yield f"m{layer}", before, norm, block + parts.mlp_reads, whole
        yield "logits", 2 * self.layers, "", parts.final, whole

    @torch.no_grad()
    def _fed(self, ids: Ids, moved: Tensor, norm: str, module: str, own: slice) -> float:
        """The metric if a reader's columns are those that its module gives for a moved stream."""
        if not norm:
            return self.metric(ids, (module, "input", lambda given: given + moved))
        stream = self.activation(ids, Site("", 0, norm, "input"))
        normed = self.hf.get_submodule(norm)((stream + moved)[None])
        new = first_tensor(self.hf.get_submodule(module)(normed))
        assert new is not None

        def give(output: Tensor) -> Tensor:
            changed = output.clone()
            changed[..., own] = new[..., own]
            return changed

        return self.metric(ids, (module, "output", give))
