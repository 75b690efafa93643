"""What patches, gradients and attention are, found without the toolkit's hooks and maps.

Every number is that of plain passes `hf(input_ids=..., use_cache=False)` with forward hooks at
modules that `layers.py` finds.
"""

from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from tests.zoo.layers import Layer, by_path, find_layers
from tests.zoo.passes import Call, Change, Edit, End, Ids, Passes, token_axis


class Oracle:
    """Passes of two prompts of one length, with the activations of one put into the other."""

    def __init__(
        self,
        hf: PreTrainedModel,
        base: Ids,
        source: Ids,
        options: tuple[int, int],
        *,
        like: "Oracle | None" = None,
    ) -> None:
        """Take a pair of prompts; nothing is run yet.

        Args:
            hf: the model.
            base: the tokens of the prompt that is patched.
            source: the tokens of the prompt whose activations are put into it.
            options: the two tokens whose logits' difference is measured.
            like: the same model's oracle, whose layers are taken over.
        """
        assert len(base) == len(source)
        self.base, self.source = base, source
        self._passes, self._options, self._like = Passes(hf), options, like
        self._weights: dict[int, list[Tensor]] = {}

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of the decoder.

        Raises:
            LookupError: none are found.
        """
        if self._like is not None:
            return self._like.layers
        return find_layers(self._passes, self.base)

    @cached_property
    def metric(self) -> float:
        """The contrast of the base prompt."""
        return self.contrast(self.base)

    @torch.no_grad()
    def logits(self, ids: Ids) -> Tensor:
        """The last token's logits."""
        return self._passes.logits(ids)

    @torch.no_grad()
    def contrast(self, ids: Ids) -> float:
        """The logit of the first option minus that of the second."""
        return float(self._difference(ids))

    @torch.no_grad()
    def embedded_as(self, ids: Ids, other: Ids) -> float:
        """The contrast of a prompt whose embeddings are another's; it alone names its tokens."""
        path = self._passes.embedding
        taken = self._passes.seen(other, path, [])
        with self._passes.changed([(path, "output", partial(_instead, taken))]):
            return self.contrast(ids)

    def patched(
        self,
        site: str,
        layer: int,
        position: int,
        head: tuple[int, int] | None = None,
        *,
        only: int | None = None,
    ) -> float | None:
        """The contrast of the base prompt with the source's activation at one token.

        Args:
            site: as in the toolkit.
            layer: counted from 0.
            position: of the token.
            head: for sites with heads, the head and how many there are.
            only: patch only this one of the modules that make up the site.

        Returns:
            None if no modules are found at which the layer has this site.
        """
        if site == "pattern":
            return None if head is None else self._patched_weights(layer, position, *head)
        places = self._places(site, layer)
        if only is not None:
            places = places[only : only + 1]
        if not places or (head is not None and self._taken(*places[0]).shape[-1] % head[1]):
            return None
        changes: list[Change] = [
            (path, end, self._put(self._taken(path, end), position, head)) for path, end in places
        ]
        with self._passes.changed(changes):
            return self.contrast(self.base)

    def stream_change(self, layer: int) -> Tensor:
        """Source minus base of the stream that a layer reads, or of the last layer's output."""
        last = layer == len(self.layers)
        path, end = self.layers[layer - last].path, "output" if last else "input"
        return _of(self._of_source[path], end) - _of(self._of_base[path], end)

    def read(self, layer: int, part: str, change: Tensor) -> float | None:
        """The contrast of the base prompt if only one part of the model reads a changed stream.

        Args:
            layer: of the part; the number of layers for the logits.
            part: mixer, mlp or logits.
            change: what is added to the stream that the part reads, at all tokens.

        Returns:
            None if the layer has no such part.
        """
        shift = partial(_plus, change)
        if part == "logits":
            with self._passes.changed([(self.layers[-1].path, "output", shift)]):
                return self.contrast(self.base)
        own = self.layers[layer]
        held: list[Change] = [(own.path, "input", shift)]
        if part == "mlp":
            held += [(path, "output", self._base_output(path)) for path in own.mixers]
        changes: list[Change] = []
        for path in own.mixers if part == "mixer" else own.others:
            seen = self._passes.seen(self.base, path, held)
            changes.append((path, "output", partial(_instead, seen)))
        if not changes:
            return None
        with self._passes.changed(changes):
            return self.contrast(self.base)

    def slope_of_read(self, layer: int, part: str, change: Tensor, step: float) -> float:
        """The derivative of `read` along a change, from passes on both sides (Richardson)."""
        slopes = []
        for size in (step, step / 2):
            values = [self.read(layer, part, sign * size * change) for sign in (1, -1)]
            assert values[0] is not None
            assert values[1] is not None
            slopes.append((values[0] - values[1]) / (2 * size))
        return (4 * slopes[1] - slopes[0]) / 3

    def gradient(self, ids: Ids) -> tuple[Tensor, Tensor]:
        """The gradient of the contrast with respect to the embeddings, and the embeddings.

        Raises:
            LookupError: the embeddings are read several times.
        """
        held: list[Tensor] = []

        def keep(tensor: Tensor) -> Tensor:
            held.append(tensor.detach().clone().requires_grad_())
            return held[-1] * 1.0  # some models change it in place

        with self._passes.changed([(self._passes.embedding, "output", keep)]):
            value = self._difference(ids)
            (found,) = torch.autograd.grad(value, [held[0]])
        if len(held) > 1:
            raise LookupError("the embeddings are read several times")
        return found[0].double(), held[0][0].detach().double()

    def slope(self, ids: Ids, direction: Tensor, step: float) -> float:
        """The change of the contrast when the embeddings move along a direction, per step."""
        values = []
        for size in (step, -step):
            shift = partial(_plus, size * direction[None])
            with self._passes.changed([(self._passes.embedding, "output", shift)]):
                values.append(self.contrast(ids))
        return (values[0] - values[1]) / (2 * step)

    def attention(self, ids: Ids) -> Tensor:
        """The last token's attention to each, averaged over heads and then over layers.

        Raises:
            LookupError: the model does not return attention weights of this prompt's tokens.
        """
        maps = [own for own in self.attention_maps(ids) if own.shape[-2:] == (len(ids),) * 2]
        if not maps:
            raise LookupError("the model's attention weights are not those of its tokens")
        rows = [own[0, :, -1].double().mean(0) for own in maps]
        return torch.stack([row / row.sum() for row in rows]).mean(0)

    @torch.no_grad()
    def attention_maps(self, ids: Ids) -> list[Tensor]:
        """The attention weights that the model returns, for most types (1, head, query, key).

        Raises:
            LookupError: it returns none.
        """
        given = torch.tensor([ids])
        with self._passes.eager():
            out: Any = self._passes.hf(input_ids=given, use_cache=False, output_attentions=True)
        given = [m for m in getattr(out, "attentions", None) or () if isinstance(m, Tensor)]
        maps = [own for own in given if own.dim() == 4]  # RWKV returns no weights of tokens there
        if not maps:
            raise LookupError("the model returns no attention weights")
        return maps

    def _difference(self, ids: Ids) -> Tensor:
        logits = self._passes.logits(ids)
        return logits[self._options[0]] - logits[self._options[1]]

    def _places(self, site: str, layer: int) -> list[tuple[str, End]]:
        """The modules' inputs or outputs that make up a site."""
        own = self.layers[layer]
        if own.path not in self._of_source:  # a layer that does not run, such as one for images
            return []
        if site in ("q", "k", "v"):
            paths = [call.path for call in self._log if call.path.startswith(f"{own.path}.")]
            named = [path for path in paths if path.endswith(f".{site}_proj")]
            return [(named[0], "output")] if len(named) == 1 else []
        if site == "z":
            return self._projection(own)
        places: dict[str, list[tuple[str, End]]] = {
            "resid_pre": [(own.path, "input")],
            # What follows at the token is then the source's, up to the end of the layer.
            "resid_mid": [(own.path, "output")] if own.sequential else [],
            "resid_post": [(own.path, "output")],
            "attn_out": [(path, "output") for path in own.mixers],
            "mlp_out": [(path, "output") for path in own.others],
        }
        return places[site]

    def _projection(self, layer: Layer) -> list[tuple[str, End]]:
        """The input of the last matrix before the end of what mixes tokens: that of the heads."""
        order = [call.path for call in self._log]
        ends = [order.index(path) for path in layer.mixers]
        if not ends:
            return []
        stream = self._taken(layer.path, "input")
        for call in reversed(self._log[: max(ends) + 1]):
            is_matrix = isinstance(self._passes.modules[call.path], nn.Linear | Conv1D)
            if is_matrix and call.path.startswith(f"{layer.path}.") and call.output is not None:
                return [(call.path, "input")] if call.output.shape == stream.shape else []
        return []

    def _patched_weights(self, layer: int, position: int, head: int, heads: int) -> float | None:
        """As `patched`, for the attention weights of a head from one token."""
        path, tokens = self.layers[layer].path, len(self.base)
        taken = self._weights.setdefault(layer, [])
        if not taken:

            def take(own: Tensor) -> Tensor:
                taken.append(own)
                return own

            with self._passes.changed_weights(path, tokens, take):
                self.contrast(self.source)
        if len(taken) != 1 or taken[0].shape[1] != heads:
            return None

        def put(own: Tensor) -> Tensor:
            changed = own.clone()
            changed[:, head, position] = taken[0][:, head, position]
            return changed

        with self._passes.changed_weights(path, tokens, put):
            return self.contrast(self.base)

    @cached_property
    def _log(self) -> list[Call]:
        return self._passes.log(self.source)

    @cached_property
    def _of_source(self) -> dict[str, list[Call]]:
        return by_path(self._log)

    @cached_property
    def _of_base(self) -> dict[str, list[Call]]:
        return by_path(self._passes.log(self.base))

    def _base_output(self, path: str) -> Edit:
        return partial(_instead, _of(self._of_base[path], "output"))

    def _taken(self, path: str, end: End) -> Tensor:
        """The source's activation."""
        return _of(self._of_source[path], end)

    def _put(self, taken: Tensor, position: int, head: tuple[int, int] | None) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            axis = token_axis(tensor, len(self.base))
            changed = tensor.clone()
            own, other = changed.select(axis, position), taken.select(axis, position)
            if head is not None:
                width = tensor.shape[-1] // head[1]
                own, other = (t.narrow(-1, head[0] * width, width) for t in (own, other))
            own.copy_(other)
            return changed

        return edit


def _plus(move: Tensor, tensor: Tensor) -> Tensor:
    return tensor + move.to(tensor)


def _instead(value: Tensor, tensor: Tensor) -> Tensor:
    """The value; a copy, since some models change it in place."""
    return value.clone()


def _of(calls: list[Call], end: str) -> Tensor:
    """What a module gets or gives in its only call."""
    (call,) = calls
    found = call.given if end == "input" else call.output
    assert found is not None
    return found
