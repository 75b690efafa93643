"""Find the layers of a model of an unlisted family, by measuring what they add to the stream.

One pass over a few tokens records the inputs and outputs of all modules. A layer's output is then
traced back to its input, step by step: each stream on the way is an earlier stream, or a norm of
it, plus the outputs of the fewest modules, each times a factor. Parallel streams
(hyper-connections) are mixes of earlier ones and a module's output, with factors of each token's
own. Such a module is the mixer's if its output at a token depends on the stream at earlier tokens,
and the MLP's otherwise. What the names of modules say is used only for heads, queries, keys and
values.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from interp.models.families.modules import Architecture
from interp.models.layers import OF_HEADS, PARALLEL, Anatomy, Layer, Part
from interp.models.module_runs import Run, Vectors, models_code, runs_of
from interp.models.stream_sums import mixed_of, smallest_sum

_MOST_STEPS = 8
"""Largest number of streams between a layer's output and its input."""

_ROUNDING = 1e-2
"""Largest difference of two gradients that rounding explains, relative to them."""

_SUMMED = ("resid_mid", "attn_out", "mlp_out")

_SEVERAL = "it has several mixers, one after another"
_MIXED = "its parallel residual streams are mixed anew for each token"
_ON_STREAM = "its norms or factors by channel are on the residual stream itself"

Parts = list[tuple[Run, float]]
"""Modules that add to a stream, each with the factor of its output, in the order they ended."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A stream as an earlier one, times a factor, plus the scaled outputs of modules."""

    base: Run
    """The module that reads the earlier stream."""
    stream: Vectors
    """The earlier stream, or its norm."""
    factor: float
    parts: Parts
    plain: bool
    """Whether the earlier stream is not normed, and its factor is the same for all channels."""
    mixed: bool = False
    """Whether several parallel streams are mixed, with factors that differ by token."""


@torch.inference_mode(False)
@torch.enable_grad()
def measured_anatomy(
    hf: PreTrainedModel, names: Architecture, heads_of: Callable[[Layer], Layer]
) -> Anatomy | None:
    """The layers of a causal model in evaluation mode; None if it has no chain of layers.

    `names` are those of its family, or of one that it resembles; `heads_of` adds the heads to a
    layer, as the modules' names show them. A pass that fails raises a CannotMeasureError.
    """
    runs, repeated = runs_of(hf)
    config = hf.config.get_text_config()
    chain = _chain(hf, runs, repeated, config.num_hidden_layers)
    if chain is None:
        return None
    embedded = runs.get(hf.get_input_embeddings())
    size = None if embedded is None or embedded.returned is None else embedded.returned.shape[-1]
    factors = (1.0, names.residual_scale(config))
    layers = [
        _with_separate_heads(runs, heads_of(_Tracer(runs, layer, factors, size).layer()))
        if layer in runs
        else _passed_by(layer)
        for layer in chain
    ]
    running = [layer for layer in chain if layer in runs]
    chained = all(runs[layer].alone for layer in running)
    inside = {module for layer in chain for module in layer.modules()}
    norms = (run for run in runs.values() if run.module not in inside and run.is_norm)
    last = runs[running[-1]].returned
    norm = next((run.module for run in norms if _same(run.read, last)), None)
    # The head does not read a norm of parallel streams.
    several = any(layer.streams > 1 for layer in layers)
    return Anatomy(layers, None if several else norm, names, measured=True, chained=chained)


def _passed_by(layer: nn.Module) -> Layer:
    """A layer that a text alone does not enter."""
    reason = "it does not run on a text alone, such as a layer that reads images"
    lacks = dict.fromkeys((*_SUMMED, *OF_HEADS), reason)
    return Layer(layer, (), (), runs=False, adds_up=False, lacks=lacks)


def _with_separate_heads(runs: Mapping[nn.Module, Run], layer: Layer) -> Layer:
    """A layer that says whether its heads can be separated, and lacks those that read ahead."""
    heads = layer.heads
    if heads is None or not layer.mixer:
        return layer
    attention, out, *projections = (
        None if part is None else runs.get(part) for part in (heads.module, heads.out, *heads.qkv)
    )
    last = runs[layer.mixer[-1].module]
    assert last.returned is not None
    lacks = dict(layer.lacks)
    queries = None if projections[0] is None else projections[0].returned
    for site, tensor in (("q", queries), ("z", None if out is None else out.read)):
        if tensor is not None and _reads_earlier(last.returned, tensor):
            lacks.setdefault(site, "tokens read one another behind it, as by a convolution")
    separate = (
        attention is not None
        and out is not None
        and len(layer.mixer) == 1
        and _same(last.read if last.is_norm else last.returned, out.returned)
        and _reads_by(attention, projections, last.returned)
    )
    return replace(layer, lacks=lacks, heads=replace(heads, separate=separate))


def _reads_by(attention: Run, projections: Sequence[Run | None], output: Vectors) -> bool:
    """Whether attention reads its input only by these projections, not also by a gate."""
    outputs = [run.returned for run in projections if run is not None and run.returned is not None]
    if attention.read is None or len(outputs) < len(projections):
        return False
    weighted = _weighted(output)
    distinct = list({id(tensor): tensor for tensor in outputs}.values())
    gradients = _gradients(weighted, distinct)
    if any(gradient is None for gradient in gradients):
        return False
    (through,) = _gradients(distinct, [attention.read], gradients)
    (total,) = _gradients(weighted, [attention.read])
    if through is None or total is None:
        return False
    return bool((through - total).norm() <= _ROUNDING * total.norm())


def _chain(
    hf: PreTrainedModel,
    runs: Mapping[nn.Module, Run],
    repeated: Container[nn.Module],
    expected: int,
) -> Sequence[nn.Module] | None:
    """The layers: modules in a list, each reading what the one before returned; some may not run.

    Of several lists, it is one with the configuration's number of layers, or the longest one.
    """
    chains: list[Sequence[nn.Module]] = []
    for module in hf.modules():
        layers = [*module.children()] if isinstance(module, nn.ModuleList) else []
        ends = [(runs[layer].read, runs[layer].returned) for layer in layers if layer in runs]
        shaped = all(
            read is not None and returned is not None and read.shape == returned.shape
            for read, returned in ends
        )
        linked = all(_same(read, before) for (_, before), (read, _) in pairwise(ends))
        once = not any(layer in repeated for layer in layers)
        least = 1 if len(layers) == expected == 1 else 2
        if len(ends) >= least and once and shaped and linked:
            chains.append(layers)
    chains.sort(key=lambda chain: (len(chain) != expected, -len(chain)))
    return chains[0] if chains else None


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.shape != other.shape:
        return False
    return one is other or bool(torch.equal(one, other.to(one.device)))


class _Tracer:
    def __init__(
        self,
        runs: Mapping[nn.Module, Run],
        layer: nn.Module,
        known: Sequence[float],
        size: int | None,
    ) -> None:
        self._whole, self._known = runs[layer], known
        inside = [runs[part] for part in layer.modules() if part is not layer and part in runs]
        shape = None if self._whole.read is None else self._whole.read.shape
        outer = sorted(inside, key=lambda run: (run.path.count("."), run.order))
        self._readers = _distinct(outer, lambda run: run.read, shape)
        self._outputs = _distinct(outer, lambda run: run.returned, shape)
        norms = [run for run in inside if run.is_norm]
        self._norms = _distinct(norms, lambda run: run.returned, shape)
        self._vectors: list[tuple[Run, Vectors]] = []
        self._size = size or 0
        # Parallel streams may also be one vector, of a multiple of the embeddings' size.
        self._streams = 1
        if shape is not None and size is not None:
            several, rest = divmod(shape[2:].numel(), size)
            self._streams = 0 if rest else several
            if self._streams > 1:
                single = torch.Size((*shape[:2], size))
                self._vectors = _distinct(outer, lambda run: run.returned, single)

    def layer(self) -> Layer:
        """What the layer adds to the stream that it reads."""
        steps, module = self._steps(), self._whole.module
        if steps is None:
            reason = "what it adds to the residual stream is not a sum of outputs of its modules"
            traced = Layer(module, (), (), adds_up=False, lacks=dict.fromkeys(_SUMMED, reason))
        else:
            traced = _sorted(module, steps)
        assert self._whole.read is not None
        parallel = self._whole.read.dim() > 3 or any(step.mixed for step in steps or ())
        return replace(traced, streams=self._streams if parallel else 1)

    def _steps(self) -> list[_Step] | None:
        steps: list[_Step] = []
        target, before = self._whole.returned, self._whole.order
        while not _same(target, self._whole.read):
            norm = next((run for run, output in self._norms if _same(output, target)), None)
            step: _Step | None
            if norm is None or norm.read is None:
                step = self._step(target, before)
            else:
                step = _Step(norm, norm.read, 1.0, [], plain=False)
            if step is None or len(steps) == _MOST_STEPS:
                return None
            steps.append(step)
            target, before = step.base.read, step.base.order if step.base is not self._whole else 0
        return steps[::-1]

    def _step(self, target: Vectors | None, before: int) -> _Step | None:
        """The step to a stream that was computed before a module ended."""
        layer = self._whole
        assert target is not None and layer.read is not None
        bases = [(layer, layer.read, True)]
        bases += [(run, output, False) for run, output in self._norms if run.order < before]
        for run, read in self._readers:
            if run.order < before and not _same(read, target):
                # A module's output may also be added, but not to itself.
                same = (output for _, output in self._outputs if _same(output, read))
                bases.append((run, next(same, read), True))
        outputs = [
            (run, output)
            for run, output in self._outputs
            if run.order < before and not _same(output, target) and not _same(output, layer.read)
        ]
        values = [output.flatten(2) for _, output in outputs]
        streams = [stream.flatten(2) for _, stream, _ in bases]
        sum_ = smallest_sum(target.flatten(2), streams, values, self._known)
        if sum_ is None:
            return self._mixed(target, [(run, stream) for run, stream, _ in bases], before)
        base, stream, plain = bases[sum_.base]
        parts = _in_order([(outputs[index][0], scale) for index, scale in sum_.parts])
        return _Step(base, stream, sum_.factor, parts, plain=plain and sum_.plain)

    def _mixed(
        self, target: Vectors, bases: Sequence[tuple[Run, Vectors]], before: int
    ) -> _Step | None:
        """The step to parallel streams that are mixed anew and get a module's output."""
        added = [(run, output) for run, output in self._vectors if run.order < before]
        if not added:
            return None
        apart = (1, target.shape[1], -1, self._size)
        streams = [stream.reshape(apart) for _, stream in bases]
        places = mixed_of(target.reshape(apart), streams, [output for _, output in added])
        if places is None:
            return None
        base, stream = bases[places[0]]
        return _Step(base, stream, 1.0, [(added[places[1]][0], 1.0)], plain=False, mixed=True)


def _distinct(
    runs: Sequence[Run], tensor: Callable[[Run], Vectors | None], shape: torch.Size | None
) -> list[tuple[Run, Vectors]]:
    """The runs whose tensors have this shape and differ from those of all runs before."""
    kept: list[tuple[Run, Vectors]] = []
    for run in runs:
        new = tensor(run)
        if new is None or new.shape != shape or any(_same(new, other) for _, other in kept):
            continue
        kept.append((run, new))
    return kept


@dataclass(frozen=True, slots=True)
class _Group:
    """Modules that add to the stream in one step, none of which depends on another."""

    step: _Step
    reading: Parts
    """Those whose output at a token depends on the stream at earlier tokens."""
    alone: Parts
    """The others."""


def _sorted(module: nn.Module, steps: Sequence[_Step]) -> Layer:
    """The layer that these steps make, their modules sorted into mixer and MLP."""
    groups, first = _grouped(steps)
    mixing = None if first is None else groups[first]
    later = groups[0 if first is None else first + 1 :]
    parallel = mixing is not None and bool(mixing.alone)
    second = later.pop(0) if later and not parallel else None
    mixer, mlp = (mixing.reading, mixing.alone) if mixing else ([], [])
    if second:
        mlp = [*second.reading, *second.alone]
    reads_earlier = second is not None and bool(second.reading)
    in_turn = any(group.reading for group in later)
    if in_turn:
        mixer = _in_order([part for group in groups for part in group.reading])
        mlp = _in_order([part for group in groups for part in group.alone])
    apart = bool(mlp) and not any(run.flat for run, _ in (*mixer, *mlp))
    plain = all(step.plain for step in steps)
    reasons = (
        (in_turn, ("resid_mid", *OF_HEADS), _SEVERAL),
        (in_turn and not apart, ("attn_out", "mlp_out"), _SEVERAL),
        (not mixer, ("attn_out", "resid_mid"), "no token reads another one in it"),
        (not mlp, ("mlp_out", "resid_mid"), "it has no MLP"),
        (parallel, ("resid_mid",), PARALLEL),
        (reads_earlier, ("resid_mid",), "its MLP, too, reads earlier tokens"),
        (any(step.mixed for step in steps), ("resid_mid",), _MIXED),
        (not plain, ("resid_mid",), _ON_STREAM),
    )
    lacks: dict[str, str] = {}
    for holds, sites, why in reasons:
        if holds:
            lacks = {**dict.fromkeys(sites, why), **lacks}
    # Between a mixer and an MLP that reads it, there must be a stream that can be patched.
    hidden = bool(mixer and mlp) and not parallel and "resid_mid" in lacks
    reader = second.step.base if second and "resid_mid" not in lacks else None
    return Layer(
        module,
        _parts(mixer),
        _parts(mlp),
        between=None if reader is None else Part(reader.module, flat=reader.flat_read),
        kept=groups[0].step.factor if groups else 1.0,
        adds_up=plain
        and all(step.factor == 1.0 for step in steps)
        and not (first or later or hidden),
        in_turn=in_turn,
        reads_on=reads_earlier or in_turn,
        lacks=lacks,
    )


def _grouped(steps: Sequence[_Step]) -> tuple[list[_Group], int | None]:
    """What is added to the stream, step by step, and which group is the first mixer's."""
    groups: list[_Group] = []
    for step in _independent(steps):
        group = _Group(step, [], [])
        for run, scale in step.parts:
            assert run.returned is not None
            reads = _reads_earlier(run.returned, step.stream)
            (group.reading if reads else group.alone).append((run, scale))
        groups.append(group)
    if any(step.mixed for step in steps):
        # What is added to the parallel streams as a whole is neither mixer nor MLP.
        groups = [group for group in groups if group.step.mixed]
    first = next((i for i, group in enumerate(groups) if group.reading), None)
    if first is None and len(groups) > 1:
        # Keys and values may come from an earlier layer, as in Gemma 4.
        groups[0] = _Group(groups[0].step, groups[0].alone, [])
        first = 0
    return groups, first


def _independent(steps: Sequence[_Step]) -> Iterator[_Step]:
    """The steps, cut before each part that depends on an earlier part of the same step."""
    for step in steps:
        parts: Parts = []
        for run, scale in step.parts:
            assert run.returned is not None
            added = [before.returned for before, _ in parts if before.returned is not None]
            gradients = _gradients(_weighted(run.returned), added) if added else []
            if any(gradient is not None for gradient in gradients):
                yield replace(step, parts=parts)
                parts = []
            parts.append((run, scale))
        if parts:
            yield replace(step, parts=parts)


def _in_order(parts: Parts) -> Parts:
    return sorted(parts, key=lambda part: part[0].order)


def _parts(parts: Parts) -> tuple[Part, ...]:
    return tuple(
        Part(
            run.module,
            scale,
            flat=run.flat,
            overwritten=run.handed is not None and run.handed._version > 0,
        )
        for run, scale in parts
    )


def _reads_earlier(output: Vectors, stream: Float[Tensor, "1 token *width"]) -> bool:
    """Whether a module's output at the last token depends on the stream at earlier tokens."""
    (gradient,) = _gradients(_weighted(output[0, -1]), [stream])
    return gradient is not None and bool(gradient[0, :-1].any())


def _gradients(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    given: Sequence[Tensor | None] | None = None,
) -> Sequence[Tensor | None]:
    """The gradient of the outputs, times those given, by each input; None where none reaches it."""
    with models_code():
        return torch.autograd.grad(outputs, inputs, given, retain_graph=True, allow_unused=True)


def _weighted(output: Float[Tensor, "*token width"]) -> Float[Tensor, ""]:
    """A weighted sum of an output; with equal weights, it would be constant behind a norm."""
    weights = torch.linspace(-1.0, 2.0, output.shape[-1], device=output.device).cos()
    return (output.float() * weights).sum()
