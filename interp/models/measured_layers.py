"""Find the layers of a model of an unlisted family, by measuring what they add to the stream.

One pass over a few tokens records the outputs of all modules. In each layer, the parts are the
fewest modules whose outputs, each times a factor, make up the difference between the layer's output
and its input (times a factor, if the layer also scales its input). A part is the mixer's if its
output at a token depends on the stream at earlier tokens, and the MLP's otherwise. What the names
of modules say is used only for heads, queries, keys and values.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from interp.models.families.modules import Architecture
from interp.models.layers import Anatomy, Layer, Part

Stream = Float[Tensor, "token size"]

_TOKENS = 12
"""Number of tokens in the pass."""
_MOST_PARTS = 3
"""Largest number of modules that add to a layer's stream."""
_EXACT = 1e-5
"""Largest error of a sum that rounding explains in float32, relative to its summands."""
_PLAIN = 1e-3
"""Largest difference between a factor and 1, or another factor of the model, that is rounding."""


@dataclass(slots=True)
class _Run:
    """What a module read and returned in the pass."""

    path: str
    module: nn.Module
    order: int
    """Its rank among the modules' ends."""
    read: Tensor | None
    returned: Tensor | None


def measured_anatomy(hf: PreTrainedModel, names: Architecture) -> Anatomy | None:
    """The layers of a causal model in evaluation mode; None if it has no chain of layers."""
    runs, scales = _pass(hf), _scales(hf, names)
    count = hf.config.get_text_config().num_hidden_layers
    chain = _chain(hf, runs, count)
    if chain is None:
        return None
    after = runs[chain[-1]].returned
    assert after is not None
    inside = {module for layer in chain for module in layer.modules()}
    norm = next(
        (
            run.module
            for run in runs.values()
            if run.module not in inside and not [*run.module.children()] and _same(run.read, after)
        ),
        None,
    )
    layers = [_measured(runs, layer, scales) for layer in chain]
    return Anatomy(layers, norm, names, measured=True)


def _pass(hf: PreTrainedModel) -> dict[nn.Module, _Run]:
    """Every module that ran once on a few tokens, with what it read and returned."""
    found: dict[nn.Module, list[_Run]] = {}
    ended = iter(range(1 << 40))

    def note(path: str, module: nn.Module, given: Any, named: dict[str, Any], output: Any) -> None:
        read = given[0] if given else named.get("hidden_states")
        returned = output[0] if isinstance(output, tuple) and output else output
        run = _Run(path, module, next(ended), _tensor(read), _tensor(returned))
        found.setdefault(module, []).append(run)

    def enter(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return output.detach().requires_grad_()

    with ExitStack() as stack:
        embedding: nn.Module = hf.get_input_embeddings()
        stack.callback(embedding.register_forward_hook(enter).remove)
        for path, module in hf.named_modules():
            hook = module.register_forward_hook(partial(note, path), with_kwargs=True)
            stack.callback(hook.remove)
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        hf(input_ids=_some_tokens(hf)[None], use_cache=False)
    return {module: runs[0] for module, runs in found.items() if len(runs) == 1}


def _tensor(value: Any) -> Tensor | None:
    """A value that is the stream of one prompt, if it has its shape."""
    whole = isinstance(value, Tensor) and value.dim() == 3 and value.is_floating_point()
    return value if whole and value.shape[:2] == (1, _TOKENS) else None


def _some_tokens(hf: PreTrainedModel) -> Tensor:
    """A few different tokens, none of which has a special meaning."""
    settings = {**hf.config.to_dict(), **hf.config.get_text_config().to_dict()}
    special = {value for value in settings.values() if type(value) is int}
    embedding: Any = hf.get_input_embeddings()
    size = embedding.weight.shape[0]
    ordinary = [token for token in range(size) if token not in special] or [*range(size)]
    step = max(1, len(ordinary) // _TOKENS)
    chosen = [ordinary[i * step % len(ordinary)] for i in range(_TOKENS)]
    return torch.tensor(chosen, device=hf.device)


def _scales(hf: PreTrainedModel, names: Architecture) -> list[float]:
    return [1.0, names.residual_scale(hf.config.get_text_config())]


def _chain(
    hf: PreTrainedModel, runs: Mapping[nn.Module, _Run], count: int
) -> list[nn.Module] | None:
    """The layers: a list of modules each of which reads what the one before it returned."""
    for module in hf.modules():
        layers = [*module.children()] if isinstance(module, nn.ModuleList) else []
        if len(layers) != count or not all(layer in runs for layer in layers):
            continue
        ends = [(runs[layer].read, runs[layer].returned) for layer in layers]
        if all(read is not None and returned is not None for read, returned in ends) and all(
            _same(read, before) for (_, before), (read, _) in pairwise(ends)
        ):
            return layers
    return None


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.shape != other.shape:
        return False
    return one is other or bool(torch.equal(one, other.to(one.device)))


def _measured(runs: Mapping[nn.Module, _Run], layer: nn.Module, scales: Sequence[float]) -> Layer:
    """What a layer adds to the stream that it reads."""
    whole = runs[layer]
    assert whole.read is not None and whole.returned is not None
    found = _sum(whole.read, whole.returned, _outputs(runs, layer), scales)
    if found is None:
        reason = "what it adds to the residual stream is not a sum of outputs of its modules"
        return Layer(
            layer, (), (), lacks=dict.fromkeys(("resid_mid", "attn_out", "mlp_out"), reason)
        )
    factor, summands = found
    mixer: list[Part] = []
    mlp: list[Part] = []
    stream, between = whole.read, None
    total = whole.read
    for run, scale in summands:
        assert run.returned is not None
        total = total + scale * run.returned
        if _reads_earlier(run.returned, stream):
            mixer.append(Part(run.module, scale))
            reader = _reader_of(runs, layer, total)
            if reader is not None and reader.read is not None:
                stream, between = reader.read, reader.module
        else:
            mlp.append(Part(run.module, scale))
    lacks = {}
    if not mixer:
        lacks["attn_out"] = lacks["resid_mid"] = "no token reads another one in it"
    elif not mlp:
        lacks["mlp_out"] = lacks["resid_mid"] = "it has no MLP"
    elif between is None:
        lacks["resid_mid"] = "attention and MLP read the same residual stream in parallel"
    return Layer(layer, tuple(mixer), tuple(mlp), between=between, factor=factor, lacks=lacks)


def _outputs(runs: Mapping[nn.Module, _Run], layer: nn.Module) -> list[_Run]:
    """The outputs of a layer's modules that are streams, in order, each of the outermost module."""
    whole = runs[layer]
    inside = [runs[module] for module in layer.modules() if module is not layer and module in runs]
    distinct: list[_Run] = []
    for run in sorted(inside, key=lambda run: run.path.count(".")):
        given = run.returned
        usable = given is not None and whole.read is not None and given.shape == whole.read.shape
        known = (whole.read, whole.returned, *(other.returned for other in distinct))
        if usable and not any(_same(given, other) for other in known):
            distinct.append(run)
    return sorted(distinct, key=lambda run: run.order)


def _reader_of(runs: Mapping[nn.Module, _Run], layer: nn.Module, stream: Tensor) -> _Run | None:
    """The first of a layer's modules that reads this stream."""
    inside = [runs[module] for module in layer.modules() if module is not layer and module in runs]
    readers = [run for run in inside if run.read is not None and run.read.shape == stream.shape]
    fitting = (run for run in readers if run.read is not None and _near(run.read, stream, stream))
    return min(fitting, key=lambda run: run.order, default=None)


def _reads_earlier(output: Tensor, stream: Tensor) -> bool:
    """Whether a module's output at the last token depends on the stream at earlier tokens."""
    weights = torch.linspace(-1, 1, output.shape[-1], device=output.device).cos()
    weighted = (output[0, -1].float() * weights.roll(1) * weights).sum()
    (gradient,) = torch.autograd.grad(weighted, stream, retain_graph=True, allow_unused=True)
    return gradient is not None and bool(gradient[0, :-1].any())


@torch.no_grad()
def _sum(
    before: Tensor, after: Tensor, outputs: Sequence[_Run], scales: Sequence[float]
) -> tuple[float, list[tuple[_Run, float]]] | None:
    """The layer's factor, and the fewest outputs that it adds, each with its scale.

    Among equally many outputs, those with the smallest error.
    """
    values = [run.returned for run in outputs if run.returned is not None]
    columns = torch.stack([v.to(after).flatten().double() for v in (before, *values, after)])
    products = columns @ columns.T
    last = len(columns) - 1
    rough = _tolerance(after.dtype)  # products cannot show errors as small as sums can
    for count in range(1, _MOST_PARTS + 1):
        best: tuple[float, float, list[tuple[_Run, float]]] | None = None
        for chosen in combinations(range(len(values)), count):
            rows = [0, *(index + 1 for index in chosen)]
            square, wanted = products[rows][:, rows], products[rows, last]
            factors = torch.linalg.lstsq(square, wanted[:, None], driver="gelsd").solution[:, 0]
            if products[last, last] - factors @ wanted > rough * products[last, last]:
                continue
            factor = _plain(float(factors[0]), [1.0])
            if abs(factor) < _PLAIN:
                continue
            own = [_plain(float(value) / factor, scales) for value in factors[1:]]
            if min(map(abs, own)) < _PLAIN:
                continue
            pairs = list(zip(own, (values[index] for index in chosen), strict=True))
            summed = [
                factor * before.to(after),
                *(factor * scale * v.to(after) for scale, v in pairs),
            ]
            error = _error(torch.stack(summed).sum(0), after, torch.stack(summed))
            if error <= _tolerance(after.dtype) and (best is None or error < best[0]):
                best = error, factor, [(outputs[i], s) for i, s in zip(chosen, own, strict=True)]
        if best is not None:
            return best[1:]
    return None


def _plain(factor: float, known: Sequence[float]) -> float:
    """A factor, or the known factor that it equals up to rounding."""
    return next((own for own in known if abs(factor - own) < _PLAIN * abs(own)), factor)


def _near(one: Tensor, other: Tensor, summands: Tensor) -> bool:
    return _error(one.to(other), other, summands[None]) <= _tolerance(other.dtype)


def _error(found: Tensor, expected: Tensor, summands: Tensor) -> float:
    """The largest error of a token's vector, relative to the sizes of its summands."""
    difference = (found - expected).detach().double().norm(dim=-1)
    size = summands.detach().double().norm(dim=-1).sum(0).clamp(min=torch.finfo(torch.float64).tiny)
    return float((difference / size).max())


def _tolerance(dtype: torch.dtype) -> float:
    return max(_EXACT, 4 * torch.finfo(dtype).eps)
