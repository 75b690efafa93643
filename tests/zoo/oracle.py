"""What patches, gradients and attention are, found without the toolkit's hooks and maps.

Every number is that of plain passes `hf(input_ids=..., use_cache=False)` with forward hooks. Where
a layer begins and ends, and which modules add to the stream, is measured: a list of modules each of
which gets the output of the one before, and modules whose outputs sum to what a layer adds.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

Ids = tuple[int, ...]
Edit = Callable[[Tensor], Tensor]

MOST_ADDENDS = 5
"""Largest number of modules in a layer whose outputs are added to the stream."""


MOST_SUMS = 20_000
"""Largest number of sums that are tried."""

TOLERANCE = 1e-5
"""Largest relative error of a sum: many models add, or compute norms, in float32 throughout."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer, as measured."""

    path: str
    mixers: tuple[str, ...]
    """Modules in it that add to the stream and in which a token sees others."""
    others: tuple[str, ...]
    """Modules in it that add to the stream token by token. If neither are found, the layer's
    output is not its input and a sum of modules' outputs."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a module in a pass."""

    path: str
    given: Tensor | None
    output: Tensor | None


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor of real numbers in an output or in arguments."""
    if isinstance(value, Tensor):
        return value if value.is_floating_point() else None
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((found for found in map(first_tensor, value) if found is not None), None)
    return None


def with_first(value: Any, edit: Edit) -> Any:
    """The same output or arguments with the first tensor edited."""
    if isinstance(value, Tensor):
        return edit(value)
    if isinstance(value, dict):
        key = next(key for key in value if first_tensor(value[key]) is not None)
        return type(value)({**value, key: with_first(value[key], edit)})
    place = next(i for i, own in enumerate(value) if first_tensor(own) is not None)
    changed = [*value[:place], with_first(value[place], edit), *value[place + 1 :]]
    return type(value)(changed)


class Oracle:
    """A model's layers, and passes of the model with changes, for prompts of one length."""

    def __init__(self, hf: PreTrainedModel, base: Ids, source: Ids, options: tuple[int, int]):
        """`options` are the tokens whose logits' difference is measured."""
        assert len(base) == len(source)
        self._hf, self.base, self.source, self._options = hf, base, source, options
        self._modules = dict(hf.named_modules())

    def logits(self, ids: Ids) -> Tensor:
        """The last token's logits."""
        found: Tensor = self._hf(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        return found.double()

    def contrast(self, ids: Ids) -> float:
        """The logit of the first option minus that of the second."""
        with torch.no_grad():
            return float(self._difference(ids))

    def patched(
        self, site: str, layer: int, position: int, head: tuple[int, int] | None = None
    ) -> float | None:
        """The contrast of the base prompt with the source's activation at one token.

        Args:
            site: as in the toolkit.
            layer: counted from 0.
            position: of the token.
            head: for sites with heads, the head and how many there are.

        Returns:
            None if no modules are found at which the layer has this site.
        """
        places = self._places(site, layer)
        if not places or (head is not None and self._width(*places[0]) % head[1]):
            return None
        with ExitStack() as stack:
            for path, end in places:
                edit = self._put(self._source_at(path, end), position, head)
                stack.enter_context(self._edited(path, end, edit))
            return self.contrast(self.base)

    def stream_change(self, layer: int) -> Tensor:
        """Source minus base of the stream that a layer reads, or of the last layer's output."""
        last = layer == len(self.layers)
        path = self.layers[layer - last].path
        calls = (self._of_source[path][0], _grouped(self._calls)[path][0])
        source, base = ((call.output if last else call.given) for call in calls)
        assert source is not None and base is not None
        return source - base

    def read(self, layer: int, part: str, change: Tensor) -> float | None:
        """The contrast of the base prompt if only one part of the model reads a changed stream.

        Args:
            layer: of the part; the number of layers for the logits.
            part: mixer, mlp or logits.
            change: what is added to the stream that the part reads, at all tokens.

        Returns:
            None if the layer has no such part.
        """
        if part == "logits":
            with self._edited(self.layers[-1].path, "output", lambda out: out + change):
                return self.contrast(self.base)
        own = self.layers[layer]
        paths = own.mixers if part == "mixer" else own.others
        if not paths:
            return None
        seen: dict[str, Tensor] = {}

        def keep(path: str) -> Edit:
            # Some models change it in place.
            return lambda out: (seen.setdefault(path, out.clone()), out)[1]

        with ExitStack() as stack:
            stack.enter_context(self._edited(own.path, "input", lambda given: given + change))
            for path in own.mixers if part == "mlp" else ():
                stack.enter_context(self._edited(path, "output", self._held(path)))
            for path in paths:
                stack.enter_context(self._edited(path, "output", keep(path)))
            self.contrast(self.base)
        with ExitStack() as stack:
            for path in paths:
                stack.enter_context(
                    self._edited(path, "output", lambda out, path=path: seen[path].clone())
                )
            return self.contrast(self.base)

    def slope_of_read(self, layer: int, part: str, change: Tensor, step: float) -> float:
        """The derivative of `read` along a change, from passes on both sides (Richardson)."""
        slopes = []
        for size in (step, step / 2):
            values = [self.read(layer, part, sign * size * change) for sign in (1, -1)]
            assert values[0] is not None and values[1] is not None
            slopes.append((values[0] - values[1]) / (2 * size))
        return (4 * slopes[1] - slopes[0]) / 3

    def is_sequential(self, layer: int) -> bool:
        """Whether what a layer adds token by token depends on what it mixes."""
        own = self.layers[layer]
        order = [call.path for call in self._calls]
        ends = [[order.index(path) for path in paths] for paths in (own.mixers, own.others)]
        if not own.mixers or not own.others or max(ends[0]) > min(ends[1]):
            return False
        seen: list[Tensor] = []
        (at,) = _grouped(self._calls)[own.others[0]]
        with ExitStack() as stack:
            for path in own.mixers:
                stack.enter_context(self._edited(path, "output", self._moved(3)))
            see = self._edited(own.others[0], "output", lambda out: (seen.append(out), out)[1])
            stack.enter_context(see)
            self.contrast(self.base)
        return at.output is not None and not torch.equal(seen[0], at.output)

    def gradient(self, ids: Ids) -> tuple[Tensor, Tensor]:
        """The gradient of the contrast with respect to the embeddings, and the embeddings."""
        held: list[Tensor] = []

        def keep(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            held.append(output.detach().clone().requires_grad_())
            return held[-1] * 1.0  # some models change it in place

        with _removed(self._embedding.register_forward_hook(keep)):
            value = self._difference(ids)
            (found,) = torch.autograd.grad(value, [held[0]])
        if len(held) > 1:
            raise LookupError("the embeddings are read several times")
        return found[0].double(), held[0][0].detach().double()

    def slope(self, ids: Ids, direction: Tensor, step: float) -> float:
        """The change of the contrast when the embeddings move along a direction, per step."""
        values = []
        for sign in (1, -1):
            move = sign * step * direction[None]
            hook = self._embedding.register_forward_hook(
                lambda m, i, out, by=move: out + by.to(out)
            )
            with _removed(hook):
                values.append(self.contrast(ids))
        return (values[0] - values[1]) / (2 * step)

    def attention(self, ids: Ids) -> Tensor:
        """The last token's attention to each, averaged over heads and then over layers.

        Raises:
            LookupError: the model does not return attention weights of this prompt's tokens.
        """
        before = self._hf.config._attn_implementation
        try:
            self._hf.set_attn_implementation("eager")
            with torch.no_grad():
                out = self._hf(
                    input_ids=torch.tensor([ids]), use_cache=False, output_attentions=True
                )
        finally:
            self._hf.set_attn_implementation(before)
        maps = [m for m in getattr(out, "attentions", None) or () if isinstance(m, Tensor)]
        if not maps or any(m.dim() != 4 or m.shape[-1] != len(ids) for m in maps):
            raise LookupError("the model returns no attention weights of its tokens")
        rows = [m[0, :, -1].double().mean(0) for m in maps]
        return torch.stack([row / row.sum() for row in rows]).mean(0)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of the decoder.

        Raises:
            LookupError: no list of modules is a chain, or several are.
        """
        chain = self._chain()
        return tuple(Layer(path, *self._adding(path)) for path in chain)

    @property
    def _embedding(self) -> nn.Module:
        found: nn.Module = self._hf.get_input_embeddings()
        return found

    def _difference(self, ids: Ids) -> Tensor:
        logits = self.logits(ids)
        return logits[self._options[0]] - logits[self._options[1]]

    @cached_property
    def _calls(self) -> list[Call]:
        return self._log(self.base)

    def _log(self, ids: Ids) -> list[Call]:
        """Every call of a module in a pass, in the order in which they end."""
        calls: list[Call] = []

        def see(path: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
                given, out = first_tensor([args, kwargs]), first_tensor(output)
                calls.append(
                    Call(
                        path,
                        None if given is None else given.clone(),
                        None if out is None else out.clone(),
                    )
                )

            return hook

        with ExitStack() as stack, torch.no_grad():
            for path, module in self._modules.items():
                stack.enter_context(
                    _removed(module.register_forward_hook(see(path), with_kwargs=True))
                )
            self.logits(ids)
        return calls

    def _chain(self) -> list[str]:
        """The paths of the layers: the outermost list in which each gets what the last gave."""
        calls = {path: list(group) for path, group in _grouped(self._calls).items()}
        found = []
        for path, module in self._modules.items():
            if not isinstance(module, nn.ModuleList):
                continue
            own = [f"{path}.{name}" for name, _ in module.named_children()]
            own = [name for name in own if name in calls]
            if len(own) < 2 or any(len(calls[name]) != 1 for name in own):
                continue
            pairs = list(itertools.pairwise(calls[name][0] for name in own))
            links = sum(_same(one.output, other.given) for one, other in pairs)
            if links >= len(pairs) / 2:
                found.append((path, own))
        outer = [
            (path, own)
            for path, own in found
            if not any(path.startswith(f"{other}.") for other, _ in found)
        ]
        if len(outer) != 1:
            named = ", ".join(path for path, _ in outer) or "none"
            raise LookupError(f"lists of modules that are chains of layers: {named}")
        return outer[0][1]

    def _adding(self, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The modules in a layer that add to its stream: those that mix tokens, and the others."""
        addends = self._addends(path)
        mixing = [self._mixes(path, addends, own) for own in addends]
        if len(addends) == 2 and all(mixing):  # an MLP that also sees the token before
            mixing = [True, False]
        mixers = tuple(own for own, mixes in zip(addends, mixing, strict=True) if mixes)
        return mixers, tuple(own for own in addends if own not in mixers)

    def _addends(self, path: str) -> tuple[str, ...]:
        """The fewest modules whose outputs, each times a number, sum to what a layer adds."""
        calls = _grouped(self._calls)
        (layer,) = calls[path]
        if layer.given is None or layer.output is None or layer.given.shape != layer.output.shape:
            return ()
        x, y = layer.given.double().flatten(), layer.output.double().flatten()
        candidates: dict[str, Tensor] = {}
        for name, own in calls.items():
            if not name.startswith(f"{path}.") or len(own) != 1 or own[0].output is None:
                continue
            out = own[0].output
            if out.numel() != x.numel() or out.shape[-1] != layer.given.shape[-1]:
                continue
            flat = out.double().flatten()
            outside = [other for other, value in candidates.items() if torch.equal(value, flat)]
            if any(torch.allclose(flat, other, rtol=1e-12, atol=0) for other in (x, y)):
                continue
            if outside and not outside[0].startswith(f"{name}."):
                continue
            for inner in outside:  # the outer module stands for the inner
                del candidates[inner]
            candidates[name] = flat
        shape = layer.given.shape
        if layer.given.dim() != 3:
            return _summed(x, y, candidates)
        # A bias that is added to the stream itself is the same for all tokens.
        free = {name: _centred(value, shape) for name, value in candidates.items()}
        x, y = _centred(x, shape), _centred(y, shape)
        return _summed(x, y, free) or _summed_by_dimension(x, y, free, shape)

    @torch.no_grad()
    def _mixes(self, layer: str, addends: Sequence[str], own: str) -> bool:
        """Whether what one token gets from a module depends on other tokens.

        One token is moved, in the layer's input or, for layers that read keys and values of earlier
        ones, in the embeddings while the layer's input is held. So is what its other modules add.
        """
        position = 3
        others = torch.tensor([i for i in range(len(self.base)) if i != position])
        (at,), (of_layer,) = (_grouped(self._calls)[path] for path in (own, layer))
        assert at.output is not None and of_layer.given is not None
        held = [(path, "output", self._held(path)) for path in addends if path != own]
        for moved in (
            [(layer, "input", self._moved(position))],
            [
                (self._path_of(self._embedding), "output", self._moved(position)),
                (layer, "input", lambda _: of_layer.given),
            ],
        ):
            seen: list[Tensor] = []
            with ExitStack() as stack:
                for edit in [*moved, *held]:
                    stack.enter_context(self._edited(*edit))
                stack.enter_context(
                    self._edited(own, "output", lambda out: (seen.append(out), out)[1])
                )
                self.logits(self.base)
            change = (seen[0] - at.output).abs().index_select(self._token_axis(at.output), others)
            if float(change.max()) > 1e-6 * float(at.output.abs().max()):
                return True
        return False

    def _held(self, path: str) -> Edit:
        (call,) = _grouped(self._calls)[path]
        output = call.output
        assert output is not None
        return lambda _: output

    def _moved(self, position: int) -> Edit:
        def move(tensor: Tensor) -> Tensor:
            changed = tensor.clone()
            place = changed.select(self._token_axis(tensor), position)
            place += torch.randn(place.shape, generator=torch.Generator().manual_seed(1)).to(place)
            return changed

        return move

    def _path_of(self, module: nn.Module) -> str:
        return next(path for path, own in self._modules.items() if own is module)

    def _places(self, site: str, layer: int) -> list[tuple[str, str]]:
        own = self.layers[layer]
        if site == "resid_pre":
            return [(own.path, "input")]
        if site == "resid_post":
            return [(own.path, "output")]
        if site == "resid_mid":  # what follows at the token is then the source's, up to the end
            return [(own.path, "output")] if self.is_sequential(layer) else []
        if site == "z":
            return self._projection(own)
        if site in "qkv":
            name = f".{site}_proj"
            found = [call.path for call in self._calls if call.path.startswith(f"{own.path}.")]
            named = [path for path in found if path.endswith(name)]
            return [(named[0], "output")] if len(named) == 1 else []
        paths = own.mixers if site == "attn_out" else own.others
        return [(path, "output") for path in paths]

    def _projection(self, layer: Layer) -> list[tuple[str, str]]:
        """The input of the last matrix before the end of what mixes tokens: that of the heads."""
        paths = [call.path for call in self._calls]
        if not layer.mixers:
            return []
        end = max(paths.index(path) for path in layer.mixers)
        shape = _grouped(self._calls)[layer.path][0].given
        for call in reversed(self._calls[: end + 1]):
            is_matrix = isinstance(self._modules[call.path], nn.Linear | Conv1D)
            if is_matrix and call.path.startswith(f"{layer.path}.") and call.output is not None:
                same = shape is not None and call.output.shape == shape.shape
                return [(call.path, "input")] if same else []
        return []

    def _width(self, path: str, end: str) -> int:
        return self._source_at(path, end).shape[-1]

    def _source_at(self, path: str, end: str) -> Tensor:
        (call,) = self._of_source[path]
        found = call.given if end == "input" else call.output
        assert found is not None
        return found

    @cached_property
    def _of_source(self) -> dict[str, list[Call]]:
        return _grouped(self._log(self.source))

    def _put(self, taken: Tensor, position: int, head: tuple[int, int] | None) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            axis = self._token_axis(tensor)
            changed = tensor.clone()
            own, other = changed.select(axis, position), taken.select(axis, position)
            if head is not None:
                width = tensor.shape[-1] // head[1]
                own, other = (t.narrow(-1, head[0] * width, width) for t in (own, other))
            own.copy_(other)
            return changed

        return edit

    def _token_axis(self, tensor: Tensor) -> int:
        for axis, size in enumerate(tensor.shape):
            if size == len(self.base):
                return axis
        raise LookupError(f"a tensor of shape {tuple(tensor.shape)} has no axis of the tokens")

    @contextmanager
    def _edited(self, path: str, end: str, edit: Edit) -> Iterator[None]:
        module = self._modules[path]
        if end == "output":
            hook = module.register_forward_hook(lambda m, i, output: with_first(output, edit))
        else:

            def enter(m: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
                if first_tensor(args) is not None:
                    return with_first(args, edit), kwargs
                return args, with_first(kwargs, edit)

            hook = module.register_forward_pre_hook(enter, with_kwargs=True)
        with _removed(hook):
            yield


@contextmanager
def _removed(hook: Any) -> Iterator[None]:
    try:
        yield
    finally:
        hook.remove()


def _centred(values: Tensor, shape: torch.Size) -> Tensor:
    """The values of a stream minus their means over tokens, flat."""
    stream = values.reshape(shape)
    return (stream - stream.mean(1, keepdim=True)).flatten()


def _summed(x: Tensor, y: Tensor, candidates: dict[str, Tensor]) -> tuple[str, ...]:
    """The fewest candidates that, each times a number, add up to y with x; best with ones."""
    names = list(candidates)
    columns = torch.stack([x, *candidates.values()], dim=1)
    gram, onto = columns.T @ columns, columns.T @ y
    size = float(y.abs().max())
    for count in range(1, MOST_ADDENDS + 1):
        if math.comb(len(names), count) > MOST_SUMS:
            break
        found = []
        for chosen in itertools.combinations(range(1, len(names) + 1), count):
            own = [0, *chosen]
            solved, info = torch.linalg.solve_ex(gram[own][:, own], onto[own])
            left = float(y @ y - onto[own] @ solved)
            if int(info) or not abs(left) <= 1e-6 * float(y @ y):
                continue
            solved = torch.linalg.lstsq(columns[:, own], y[:, None]).solution[:, 0]
            if float((columns[:, own] @ solved - y).abs().max()) > TOLERANCE * size:
                continue
            if float(solved.abs().min()) > TOLERANCE:
                ones = float((solved - 1).abs().max()) < TOLERANCE
                paths = [names[index - 1] for index in chosen]
                found.append((not ones, sum(path.count(".") for path in paths), paths))
        if found:
            return tuple(min(found)[2])
    return ()


def _summed_by_dimension(
    x: Tensor, y: Tensor, candidates: dict[str, Tensor], shape: torch.Size
) -> tuple[str, ...]:
    """One or two candidates that add up to y with x, each times a number for each dimension."""
    by_dimension = {name: value.reshape(shape)[0].T for name, value in candidates.items()}
    stream, onto = x.reshape(shape)[0].T, y.reshape(shape)[0].T[..., None]
    for count in (1, 2):
        for chosen in itertools.combinations(by_dimension, count):
            columns = torch.stack([stream, *(by_dimension[name] for name in chosen)], dim=-1)
            solved = torch.linalg.lstsq(columns, onto).solution
            fits = float((columns @ solved - onto).abs().max()) <= TOLERANCE * float(y.abs().max())
            if fits and float(solved[:, 0].abs().max()) > TOLERANCE:
                return chosen
    return ()


def _grouped(calls: Sequence[Call]) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for call in calls:
        found.setdefault(call.path, []).append(call)
    return found


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and torch.equal(one, other)
