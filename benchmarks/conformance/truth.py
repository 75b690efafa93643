"""What activations, patches, gradients and edges are: plain passes with hooks at named modules.

Nothing here uses the toolkit or another library than PyTorch. Derivatives are central differences.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.conformance.types import Ids, Parts, Subject

End = Literal["input", "output"]
Change = tuple[nn.Module, End, Callable[[Tensor], Tensor]]

STEP = 5e-3
"""Steps of differences, as shares of what is moved: the cube root of float32's precision."""


class Reader(NamedTuple):
    """What reads the stream: a norm, the module that reads the norm's output, and its columns."""

    norm: nn.Module | None
    module: nn.Module
    own: slice
    reads: int
    """The number of parts (attention or MLP of a layer, in turn) that wrote before."""


class Truth:
    """Plain passes of a subject's model."""

    def __init__(self, subject: Subject, parts: Parts) -> None:
        self.subject, self.parts, self.hf = subject, parts, subject.hf
        self.layers: int = len(self.hf.get_submodule(parts.layers))
        self.embedding: nn.Module = self.hf.get_input_embeddings()

    @torch.no_grad()
    def metric(self, ids: Ids, *changes: Change) -> float:
        """The difference of the two logits."""
        with hooked(changes):
            return float(self._metrics(torch.tensor([ids])))

    def _metrics(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        return self.subject.metric(logits.double())

    def place(self, site: str, layer: int) -> tuple[str, End, float] | None:
        """A site's module, end and factor; None if the type has no such site."""
        path, parts = f"{self.parts.layers}.{layer}", self.parts
        if site in ("resid_pre", "resid_post"):
            return path, "input" if site == "resid_pre" else "output", 1.0
        if site == "resid_mid":
            return (f"{path}.{parts.mid}", "input", 1.0) if parts.mid else None
        if not parts.mlp:
            return None
        names = (parts.mlp if site == "mlp_out" else parts.attention).split("|")
        block = self.hf.get_submodule(path)
        name = next(own for own in names if hasattr(block, own.split(".", maxsplit=1)[0]))
        scale = getattr(self.hf.config, parts.scale) if parts.scale else 1.0
        return f"{path}.{name}", "output", scale

    def read(self, ids: Ids, site: str, layer: int) -> Tensor:
        """A site's values, (token, width)."""
        place = self.place(site, layer)
        assert place is not None
        return place[2] * self._seen(ids, place[0], place[1])

    def _seen(self, ids: Ids, path: str, end: End) -> Tensor:
        seen: list[Tensor] = []

        def keep(tensor: Tensor) -> Tensor:
            seen.append(tensor.reshape(-1, tensor.shape[-1]).clone())
            return tensor

        self.metric(ids, (self.hf.get_submodule(path), end, keep))
        return seen[0]

    def patched(self, ids: Ids, site: str, layer: int, position: int, vector: Tensor) -> float:
        """The metric when a site is set to a vector at one token.

        The stream between attention and MLP is set where attention adds to it, so that the MLP and
        all that follows read the vector.
        """
        if site == "resid_mid":
            vector = vector - self.read(ids, "resid_pre", layer)[position]
            site = "attn_out"
        place = self.place(site, layer)
        assert place is not None

        def put(tensor: Tensor) -> Tensor:
            changed = tensor.clone()
            changed.view(-1, tensor.shape[-1])[position] = vector.to(tensor) / place[2]
            return changed

        return self.metric(ids, (self.hf.get_submodule(place[0]), place[1], put))

    @torch.no_grad()
    def weights(self, ids: Ids, layer: int) -> Tensor | None:
        """Attention weights by transformers' plain attention, (head, query, key)."""
        before = self.hf.config._attn_implementation
        self.hf.set_attn_implementation("eager")
        self.hf.config._attn_implementation = "eager"  # Falcon reads it when it runs
        maps = self.hf(input_ids=torch.tensor([ids]), output_attentions=True).attentions
        self.hf.set_attn_implementation(before)
        self.hf.config._attn_implementation = before
        # A hybrid lists those of its attention layers, which are its last ones here.
        place = layer - self.layers + len(maps)
        return None if place < 0 or maps[place] is None else maps[place][0]

    @torch.no_grad()
    def gradient(self, ids: Ids) -> Tensor:
        """The metric's derivative with respect to each entry of the embeddings, (token, width)."""
        width, table = self.embedding.weight.shape[1], self.embedding.weight
        step = STEP * float(table.std())
        moves = step * torch.eye(len(ids) * width, dtype=torch.float64).view(-1, len(ids), width)
        found = []
        for some in moves.split(128):
            given, values = torch.tensor([ids]).expand(len(some), -1), []
            for move in (some, -some):
                with hooked([(self.embedding, "output", partial(torch.add, other=move))]):
                    values.append(self._metrics(given))
            found.append((values[0] - values[1]) / (2 * step))
        return torch.cat(found).view(len(ids), width)

    def between(self, ids: Ids, other: Ids, steps: int) -> tuple[float, float]:
        """The change of the metric from another prompt's embeddings to this one's, and an error.

        Returns:
            The change, by two passes, and how far integrals by `steps` plain gradients are from it:
            the larger of the errors of the midpoint and the trapezoid rule.
        """
        start, end = (self.embedding(torch.tensor([own])).detach() for own in (other, ids))
        change = self.metric(ids) - self.metric(other)

        def slope(point: float) -> float:
            given = torch.lerp(start, end, point).requires_grad_()
            with hooked([(self.embedding, "output", lambda tensor: given)]):
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
        found = {}
        for reader, read in self._readers().items():
            for writer, (change, wrote) in self._writers(base, other).items():
                if wrote < read.reads:
                    ends = [self.metric(base, *_fed(read, by * change)) for by in (STEP, -STEP)]
                    found[writer, reader] = (ends[0] - ends[1]) / (2 * STEP)
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
                scale = getattr(self.hf.config, self.parts.scale) if self.parts.scale else 1.0
                matrix = scale * self.hf.get_submodule(path).weight.detach()
                count = self.hf.config.num_attention_heads
                for head, (own, columns) in enumerate(
                    zip(z.chunk(count, 1), matrix.chunk(count, 1), strict=True)
                ):
                    found[f"a{layer}.h{head}"] = own @ columns.T, 2 * layer
            found[f"m{layer}"] = (
                change(partial(self.read, site="mlp_out", layer=layer)),
                2 * layer + 1,
            )
        return found

    def _readers(self) -> dict[str, Reader]:
        found = {}
        for layer in range(self.layers):
            block = self.hf.get_submodule(f"{self.parts.layers}.{layer}")
            if name := self.parts.heads:
                norm = block.get_submodule(self.parts.heads_norm)
                heads = self.hf.config.num_attention_heads
                size = block.get_submodule(name.format("q")).out_features // heads
                for kind, of in (("q", "h"), ("k", "kv"), ("v", "kv")):
                    module = block.get_submodule(name.format(kind))
                    for head in range(module.out_features // size):
                        own = slice(head * size, (head + 1) * size)
                        read = Reader(norm, module, own, 2 * layer)
                        found[f"a{layer}.{of}{head}.{kind}"] = read
            norm = block.get_submodule(self.parts.mlp_norm) if self.parts.mlp_norm else None
            module, reads = (
                block.get_submodule(self.parts.mlp_reads),
                2 * layer + bool(self.parts.mid),
            )
            found[f"m{layer}"] = Reader(norm, module, slice(None), reads)
        final = self.hf.get_submodule(self.parts.final)
        found["logits"] = Reader(None, final, slice(None), 2 * self.layers)
        return found


def _fed(reader: Reader, moved: Tensor) -> list[Change]:
    """Hooks by which a reader's columns are those that its module gives for a moved stream."""
    if reader.norm is None:
        return [
            (reader.module, "input", lambda tensor: tensor + moved.to(tensor).view(tensor.shape))
        ]
    norm, kept = reader.norm, list[Tensor]()
    busy: list[bool] = []

    def keep(tensor: Tensor) -> Tensor:
        if not busy:
            kept[:] = [tensor]
        return tensor

    def give(output: Tensor) -> Tensor:
        if busy:  # the module's own pass below
            return output
        busy.append(True)
        new = reader.module(norm(kept[0] + moved.to(kept[0])))
        busy.clear()
        changed = output.clone()
        changed[..., reader.own] = (new[0] if isinstance(new, tuple) else new)[..., reader.own]
        return changed

    return [(norm, "input", keep), (reader.module, "output", give)]


@contextmanager
def hooked(changes: Sequence[Change]) -> Iterator[None]:
    """Pass the first tensor that each module gets or gives through its function in the block."""
    with ExitStack() as stack:
        for module, end, edit in changes:
            stack.callback(_hook(module, end, edit).remove)
        yield


def _hook(module: nn.Module, end: End, edit: Callable[[Tensor], Tensor]) -> Any:
    def leave(_: nn.Module, args: Any, output: Any) -> Any:
        return edit(output) if isinstance(output, Tensor) else (edit(output[0]), *output[1:])

    def enter(_: nn.Module, args: Any, named: Any) -> Any:
        if args:
            return (edit(args[0]), *args[1:]), named
        return args, {**named, "hidden_states": edit(named["hidden_states"])}

    if end == "output":
        return module.register_forward_hook(leave)
    return module.register_forward_pre_hook(enter, with_kwargs=True)
