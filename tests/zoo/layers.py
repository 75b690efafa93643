"""A decoder's layers and what adds to its residual stream, found by measuring.

The layers are a list of modules each of which gets the output of the one before. The modules that
add to the stream are those whose outputs sum to what a layer adds.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tests.zoo.passes import Call, Change, Edit, Ids, Passes, token_axis

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
    """Modules in it that add to the stream token by token. If there are neither, the layer's output
    is not the sum of its input and of modules' outputs."""
    sequential: bool
    """Whether what the others add depends on what the mixers add, and not the other way round."""


def find_layers(passes: Passes, ids: Ids) -> tuple[Layer, ...]:
    """The layers of a model, from passes of a prompt.

    Raises:
        LookupError: no list of modules is a chain, or several are.
    """
    log = passes.log(ids)
    finder = _Finder(passes, ids, by_path(log), [call.path for call in log])
    return tuple(
        finder.layer(path) if path in finder.calls else Layer(path, (), (), sequential=False)
        for path in finder.chain()
    )


def by_path(calls: Sequence[Call]) -> dict[str, list[Call]]:
    """The calls of each module."""
    found: dict[str, list[Call]] = {}
    for call in calls:
        found.setdefault(call.path, []).append(call)
    return found


@dataclass(frozen=True, slots=True)
class _Finder:
    passes: Passes
    ids: Ids
    calls: Mapping[str, list[Call]]
    order: list[str]

    def chain(self) -> list[str]:
        """The paths of the layers: the outermost list in which each gets what the last gave.

        Some may not run, such as those that read images.
        """
        found: dict[str, list[str]] = {}
        for path, module in self.passes.modules.items():
            if not isinstance(module, nn.ModuleList):
                continue
            own = [f"{path}.{name}" for name, _ in module.named_children()]
            run = [name for name in own if name in self.calls]
            if len(run) < 2 or any(len(self.calls[name]) != 1 for name in run):
                continue
            pairs = list(itertools.pairwise(self.calls[name][0] for name in run))
            if sum(_same(one.output, other.given) for one, other in pairs) >= len(pairs) / 2:
                found[path] = own
        outer = [p for p in found if not any(p.startswith(f"{other}.") for other in found)]
        if len(outer) != 1:
            named = ", ".join(outer) or "none"
            raise LookupError(f"lists of modules that are chains of layers: {named}")
        return found[outer[0]]

    def layer(self, path: str) -> Layer:
        addends = self._addends(path)
        mixing = [own for own in addends if self._mixes(path, addends, own)]
        if len(addends) == 2 == len(mixing):  # an MLP that also sees the token before
            mixing = mixing[:1]
        others = tuple(own for own in addends if own not in mixing)
        sequential = self._is_sequential(mixing, others)
        return Layer(path, tuple(mixing), others, sequential=sequential)

    def _addends(self, path: str) -> tuple[str, ...]:
        """The fewest modules whose outputs, each times a number, sum to what a layer adds."""
        (layer,) = self.calls[path]
        if layer.given is None or layer.output is None or layer.given.shape != layer.output.shape:
            return ()
        size = self._output(self.passes.embedding).shape[-1]
        if layer.given.shape[2:].numel() in range(2 * size, layer.given.numel(), size):
            return self._writers(path, size)
        x, y = layer.given.double(), layer.output.double()
        candidates: dict[str, Tensor] = {}
        for name, own in self.calls.items():
            out = own[0].output
            if not name.startswith(f"{path}.") or len(own) != 1 or out is None:
                continue
            if out.numel() != x.numel() or out.shape[-1] != x.shape[-1]:
                continue
            value = out.double().reshape(x.shape)
            if any(torch.allclose(value, other, rtol=1e-12, atol=0) for other in (x, y)):
                continue
            same = [other for other, known in candidates.items() if torch.equal(known, value)]
            if not all(other.startswith(f"{name}.") for other in same):
                continue
            for inner in same:  # the outer module stands for the inner
                del candidates[inner]
            candidates[name] = value
        if x.dim() != 3:
            return _summed(x, y, candidates)
        if normed := self._before_norms(path, x, y, candidates):
            return normed
        # A bias that is added to the stream itself is the same for all tokens.
        free = {name: _centred(value) for name, value in candidates.items()}
        x, y = _centred(x), _centred(y)
        return _summed(x, y, free) or _summed_by_dimension(x[0], y[0], free)

    def _writers(self, path: str, size: int) -> tuple[str, ...]:
        """The modules that write to parallel streams, whose sums have other factors for each token.

        When one of them is moved, the layer's output moves, although the outputs of all other
        modules that could write are held. Modules that return all streams at once, and what is
        inside them, are left out.
        """
        shapes = {
            name: own[0].output.shape
            for name, own in self.calls.items()
            if name.startswith(f"{path}.") and len(own) == 1 and own[0].output is not None
        }
        whole = self._output(path).numel()
        wide = [name for name, shape in shapes.items() if shape.numel() == whole]
        single = [
            name
            for name, shape in shapes.items()
            if shape.numel() == len(self.ids) * size and shape[-1] == size
            if len(self.ids) in shape and not _inside(name, wide)
        ]
        found: list[str] = []
        for name in sorted(single, key=lambda own: own.count(".")):
            if _inside(name, found):
                continue
            others = [o for o in single if not _inside(o, [name]) and not _inside(name, [o])]
            held: list[Change] = [(o, "output", self._held(o, "output")) for o in others]
            moved = self.passes.seen(self.ids, path, [*held, (name, "output", self._moved(3))])
            apart = float((moved - self._output(path)).abs().max())
            if apart > 1e-6 * float(moved.abs().max()):
                found.append(name)
        return tuple(sorted(found, key=self.order.index))

    def _before_norms(
        self, path: str, x: Tensor, y: Tensor, candidates: Mapping[str, Tensor]
    ) -> tuple[str, ...]:
        """The two modules that add to the stream if a norm is on the stream after each of them."""
        norms = [
            (call.output.double(), call.given.double())
            for name, (call, *_) in self.calls.items()
            if name.startswith(f"{path}.") and call.output is not None and call.given is not None
            if call.output.shape == call.given.shape == x.shape
        ]
        for last in (given for output, given in norms if _close(output, y)):
            for other, added in candidates.items():
                for output, given in norms:
                    if _close(output + added, last):
                        for mixer, mixed in candidates.items():
                            if _close(x + mixed, given):
                                return mixer, other
        return ()

    def _mixes(self, layer: str, addends: Sequence[str], own: str) -> bool:
        """Whether what one token gets from a module depends on other tokens.

        One token is moved, in the layer's input or, for layers that read keys and values of earlier
        ones, in the embeddings while the layer's input is held. So is what its other modules add.
        """
        position = 3
        others = torch.tensor([i for i in range(len(self.ids)) if i != position])
        at = self._output(own)
        held = self._held(layer, "input")
        rest: list[Change] = [
            (path, "output", self._held(path, "output")) for path in addends if path != own
        ]
        move = self._moved(position)
        here: list[Change] = [(layer, "input", move)]
        before: list[Change] = [(self.passes.embedding, "output", move), (layer, "input", held)]
        for moved in (here, before):
            change = (self.passes.seen(self.ids, own, [*moved, *rest]) - at).abs()
            apart = change.index_select(token_axis(at, len(self.ids)), others)
            if float(apart.max()) > 1e-6 * float(at.abs().max()):
                return True
        return False

    def _is_sequential(self, mixers: Sequence[str], others: Sequence[str]) -> bool:
        ends = [[self.order.index(path) for path in paths] for paths in (mixers, others)]
        if not mixers or not others or max(ends[0]) > min(ends[1]):
            return False
        move = self._moved(3)
        seen = self.passes.seen(self.ids, others[0], [(path, "output", move) for path in mixers])
        return not torch.equal(seen, self._output(others[0]))

    def _output(self, path: str) -> Tensor:
        (call,) = self.calls[path]
        assert call.output is not None
        return call.output

    def _held(self, path: str, end: str) -> Edit:
        (call,) = self.calls[path]
        value = call.given if end == "input" else call.output
        assert value is not None
        held: Tensor = value
        return lambda _: held

    def _moved(self, position: int) -> Edit:
        def move(tensor: Tensor) -> Tensor:
            changed = tensor.clone()
            place = changed.select(token_axis(tensor, len(self.ids)), position)
            place += torch.randn(place.shape, generator=torch.Generator().manual_seed(1)).to(place)
            return changed

        return move


def _inside(path: str, others: Sequence[str]) -> bool:
    """Whether a module is one of the others, or in one of them."""
    return any(path == other or path.startswith(f"{other}.") for other in others)


def _summed(x: Tensor, y: Tensor, candidates: Mapping[str, Tensor]) -> tuple[str, ...]:
    """The fewest candidates that, each times a number, add up to y with x; best with ones."""
    names, onto = list(candidates), y.flatten()
    columns = torch.stack([x.flatten(), *(value.flatten() for value in candidates.values())], dim=1)
    gram, products = columns.T @ columns, columns.T @ onto
    square, size = float(onto @ onto), float(y.abs().max())
    for count in range(1, MOST_ADDENDS + 1):
        if math.comb(len(names), count) > MOST_SUMS:
            break
        found = []
        for chosen in itertools.combinations(range(1, len(names) + 1), count):
            own = [0, *chosen]
            # Products of the columns tell quickly what is far from a sum.
            solved, info = torch.linalg.solve_ex(gram[own][:, own], products[own])
            if int(info) or not abs(square - float(products[own] @ solved)) <= 1e-6 * square:
                continue
            solved = torch.linalg.lstsq(columns[:, own], onto[:, None]).solution[:, 0]
            if float((columns[:, own] @ solved - onto).abs().max()) > TOLERANCE * size:
                continue
            if float(solved.abs().min()) > TOLERANCE:
                ones = float((solved - 1).abs().max()) < TOLERANCE
                paths = [names[index - 1] for index in chosen]
                found.append((not ones, sum(path.count(".") for path in paths), paths))
        if found:
            return tuple(min(found)[2])
    return ()


def _summed_by_dimension(x: Tensor, y: Tensor, candidates: Mapping[str, Tensor]) -> tuple[str, ...]:
    """One or two candidates that add up to y with x, each times a number for each dimension."""
    onto = y.T[..., None]
    for count in (1, 2):
        for chosen in itertools.combinations(candidates, count):
            columns = torch.stack([x.T, *(candidates[name][0].T for name in chosen)], dim=-1)
            solved = torch.linalg.lstsq(columns, onto).solution
            fits = float((columns @ solved - onto).abs().max()) <= TOLERANCE * float(y.abs().max())
            if fits and float(solved[:, 0].abs().max()) > TOLERANCE:
                return chosen
    return ()


def _close(one: Tensor, other: Tensor) -> bool:
    return float((one - other).abs().max()) <= TOLERANCE * float(other.abs().max())


def _centred(stream: Tensor) -> Tensor:
    """The stream (1, token, width) minus its mean over tokens."""
    return stream - stream.mean(1, keepdim=True)


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and torch.equal(one, other)
