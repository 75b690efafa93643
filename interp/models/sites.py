"""Sites (activations that can be read and patched): their locations, and hooks on them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from interp.choices import SITES
from interp.errors import ModelError, UserError
from interp.models.layers import Part
from interp.models.model import Model
from interp.models.module_runs import rebuilt

View = Callable[[Float[Tensor, "row token width"]], Float[Tensor, "row token head size"]]
"""The site as a view of a module's tensor; the head axis has size 1 if the site has no heads.
Attention weights, with axes (row, head, query, key), are left as they are."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a layer's site is found in the running model."""

    module: nn.Module
    end: Literal["input", "output", "weights"]
    """The site is the module's first input, its output, or the attention weights that it returns
    with its output."""
    view: View
    enters: int
    """The first layer that must run for a patch to take effect; the number of layers if none must
    run."""
    others: tuple[Part, ...] = ()
    """Modules that run before this one, whose outputs are parts of the site, as this one's is."""
    scale: float = 1.0
    """The factor of this module's output in the site, as in the residual stream."""
    in_turn: bool = False
    """Whether the site instead has the outputs of `others` and of this module side by side."""
    flat_in: nn.Module | None = None
    """The layer, if a module returns, or reads, the tokens of all its rows one after another."""
    overwritten: bool = False
    """Whether the tensor is later changed in place, so that its values must be copied."""


def locate(model: Model, site: str, layer: int) -> Location:
    """The location at which a site is read and, unless it acts through another site, patched.

    Raises:
        UserError: the layer has no such site.
    """
    if site in ("resid_pre", "resid_post"):
        return _stream(model, layer if site == "resid_pre" else layer + 1)
    this_layer = model.layers[layer]
    if site in this_layer.lacks:
        raise UserError(
            f"layer {layer} of {model.name} ({model.hf.config.model_type}) lacks the site {site}: "
            f"{this_layer.lacks[site]}; omit the site"
        )
    if SITES[site].heads is not None:
        return _location_of_heads(model, site, layer)
    if site == "resid_mid":
        assert this_layer.between is not None
        flat_in = this_layer.module if this_layer.between.flat else None
        return Location(this_layer.between.module, "input", _whole, layer, flat_in=flat_in)
    parts = this_layer.mixer if site == "attn_out" else this_layer.mlp
    flat_in = this_layer.module if any(part.flat for part in parts) else None
    *others, last = parts
    return Location(
        last.module,
        "output",
        _whole,
        layer,
        tuple(others),
        last.scale,
        this_layer.in_turn and bool(others),
        flat_in,
        any(part.overwritten for part in parts),
    )


def _stream(model: Model, layer: int) -> Location:
    """The residual stream that a layer reads, or the stream after the last layer."""
    layers, final_norm = model.layers, model.anatomy.final_norm
    running = [index for index, this_layer in enumerate(layers) if this_layer.runs]
    following = next((index for index in running if index >= layer), None)
    if following is not None:
        return Location(layers[following].module, "input", _whole, following)
    if final_norm is None:
        return Location(layers[running[-1]].module, "output", _whole, running[-1])
    return Location(final_norm, "input", _whole, len(layers))


def _location_of_heads(model: Model, site: str, layer: int) -> Location:
    model.check_whole(f"the site {site}")
    heads = model.layers[layer].heads
    assert heads is not None
    if SITES[site].is_weights:
        if not model.architecture.causal:
            raise UserError(
                f"the site {site} is not supported for encoders such as {model.name}; omit it, or "
                "patch z, through which it acts"
            )
        return Location(heads.module, "weights", lambda weights: weights, layer)
    if site == "z":
        assert heads.out is not None
        return Location(heads.out, "input", _own_heads(heads.count), layer)
    module = heads.qkv["qkv".index(site)]
    assert module is not None
    return Location(module, "output", _heads(model, site), layer)


def layer_count(model: Model) -> int:
    """Number of layers in the model."""
    return len(model.layers)


def layers_read(model: Model) -> int:
    """Number of layers after which no token reads another: the layers, or one more than these."""
    return len(model.layers) + model.layers[-1].reads_on


def layers_with(model: Model, site: str) -> list[int]:
    """The layers that have a site."""
    needed = {site, SITES[site].patched_at}
    return [i for i, layer in enumerate(model.layers) if not needed & layer.lacks.keys()]


def head_count(model: Model, site: str) -> int:
    """Number of heads in each layer at a site."""
    heads = next((layer.heads for layer in model.layers if layer.heads is not None), None)
    if heads is None:
        return 0
    return heads.shared if SITES[site].heads == "key-value" else heads.count


def check_sites(
    model: Model,
    sites: Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    everywhere: bool = False,
) -> None:
    """Raise a UserError unless a model has the sites, layers and heads.

    Each site must be in some layer, in these layers or `everywhere`, with these heads, if given.
    """
    _check_indices("layer", layers, layer_count(model), model)
    for site in sites:
        if heads is not None and SITES[site].heads is None:
            with_heads = ", ".join(entry.name for entry in SITES.values() if entry.heads)
            raise UserError(
                f"got heads, but {site} has none; omit the heads, or use only sites with heads: "
                f"{with_heads}"
            )
        _check_indices(f"{site} head", heads, head_count(model, site), model)
        present = layers_with(model, site)
        wanted = present or [0] if layers is None else layers
        for layer in range(layer_count(model)) if everywhere else wanted:
            for needed in (site, SITES[site].patched_at):
                locate(model, needed, layer)


def _check_indices(kind: str, given: Sequence[int] | None, count: int, model: Model) -> None:
    for index in given or ():
        if not 0 <= index < count:
            raise UserError(
                f"no {kind} {index} in {model.name}, which has {count}; expected 0 to {count - 1}"
            )


def _whole(tensor: Float[Tensor, "row token width"]) -> Float[Tensor, "row token 1 width"]:
    return tensor.unsqueeze(-2)


def _own_heads(heads: int) -> View:
    return lambda tensor: tensor.view(*tensor.shape[:-1], heads, -1)


def _heads(model: Model, site: str) -> View:
    heads, shared = head_count(model, "q"), head_count(model, "k")
    layout, which = model.architecture.layout, "qkv".index(site)
    if layout == "own":
        return _own_heads(head_count(model, site))
    if layout == "interleaved":
        return lambda tensor: tensor.view(*tensor.shape[:-1], heads, 3, -1)[..., which, :]
    first, count = (0, heads, heads + shared)[which], head_count(model, site)
    together = _own_heads(heads + 2 * shared)
    return lambda tensor: together(tensor).narrow(-2, first, count)


Activation = Float[Tensor, "row token width"] | Float[Tensor, "row head query key"]
Edit = Callable[[Activation], Activation]
LocatedEdit = tuple[Location, Edit]
Key = TypeVar("Key", bound=Hashable)


def edited(*edits: LocatedEdit) -> AbstractContextManager[None]:
    """Within the block, pass the tensor at each location through its edit, in the given order."""
    return hooked(*(hook for location, edit in edits for hook in _hooks(location, edit)))


def embedded_as(model: Model, embeddings: Tensor) -> AbstractContextManager[None]:
    """Within the block, replace the input embeddings of all tokens.

    Unlike a pass over embeddings alone, the model still reads the tokens themselves wherever else
    it needs them, as in the layers of Gemma 4 (E2B, E4B).
    """
    calls: list[nn.Module] = []

    def embed(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        calls.append(module)
        if len(calls) > 1 or output.shape != embeddings.shape:
            raise ModelError(
                f"{model.name} ({model.hf.config.model_type}) embeds other tokens than the "
                "prompt's, or embeds them several times, so gradients and patches have no meaning "
                "for it; answers (evaluate) work"
            )
        return embeddings.clone()  # some models scale their embeddings in place

    return hooked(model.hf.get_input_embeddings().register_forward_hook(embed))


@contextmanager
def hooked(*handles: RemovableHandle) -> Iterator[None]:
    """Remove these hooks when the block ends."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def watched(
    locations: Iterable[Location], see: Callable[[Tensor], None]
) -> AbstractContextManager[None]:
    """Within the block, call `see` with the tensor at each location whenever it is computed."""

    def look(tensor: Tensor) -> Tensor:
        see(tensor)
        return tensor

    return edited(*((location, look) for location in locations))


@contextmanager
def recorded(locations: Mapping[Key, Location]) -> Iterator[dict[Key, Activation]]:
    """Yield a dictionary that receives the latest tensor at each location, under its key."""
    values: dict[Key, Activation] = {}

    def keep(key: Key, tensor: Activation) -> Activation:
        values[key] = tensor
        return tensor

    with edited(*((location, partial(keep, key)) for key, location in locations.items())):
        yield values


@contextmanager
def skipped(layers: Sequence[nn.Module]) -> Iterator[None]:
    """Make these layers return their input within the block."""
    with ExitStack() as stack:
        for layer in layers:
            stack.enter_context(replaced(layer, lambda hidden_states, *_, **__: hidden_states))
        yield


@contextmanager
def replaced(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Replace a module's computation within the block, but keep its hooks."""
    original = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        del module.forward
        if original is not None:  # another library, such as accelerate, had already replaced it
            module.forward = original


@contextmanager
def attention_by(model: Model, implementation: str) -> Iterator[None]:
    """Within the block, run the model with another of transformers' attention functions."""
    before = model.attn_implementation
    try:
        model.hf.set_attn_implementation(implementation)
        yield
    finally:
        model.hf.set_attn_implementation(before)


def _hooks(location: Location, edit: Edit) -> Iterator[RemovableHandle]:
    shape: list[int] = []
    if location.flat_in is not None:

        def enter(module: nn.Module, inputs: Any, named: dict[str, Any]) -> None:
            shape[:] = (inputs[0] if inputs else named["hidden_states"]).shape

        yield location.flat_in.register_forward_pre_hook(enter, with_kwargs=True)

    def changed(tensor: Tensor) -> Tensor:
        if shape:
            new = edit(tensor.view(shape)).view(tensor.shape)
        elif tensor.dim() > 3 and location.end != "weights":  # parallel streams are one stream
            new = edit(tensor.flatten(2)).view(tensor.shape)
        else:
            new = edit(tensor)
        return new.clone() if location.overwritten else new

    if location.end == "input":

        def change_input(module: nn.Module, inputs: Any, named: dict[str, Any]) -> Any:
            if inputs:
                return (changed(inputs[0]), *inputs[1:]), named
            return inputs, {**named, "hidden_states": changed(named["hidden_states"])}

        yield location.module.register_forward_pre_hook(change_input, with_kwargs=True)
        return

    if location.in_turn:
        yield from _hooks_in_turn(location, edit)
        return
    others: list[Tensor] = []
    for part in location.others:

        def keep(module: nn.Module, inputs: Any, output: Any, scale: float = part.scale) -> None:
            tensor = output[0] if isinstance(output, tuple | list) else output
            others.append(scale * tensor)

        yield part.module.register_forward_hook(keep)

    def change(tensor: Tensor) -> Tensor:
        if not others and location.scale == 1.0:
            return changed(tensor)
        rest = sum(others)
        others.clear()
        return _within(tensor, location.scale, rest, changed)

    yield _on_output(location.module, change, place=1 if location.end == "weights" else 0)


def _within(tensor: Tensor, scale: float, rest: Tensor | int, edit: Edit) -> Tensor:
    """A tensor whose multiple is edited as part of a sum; what the edit leaves keeps its digits."""
    added = rest + scale * tensor
    new = edit(added)
    changed = (new - rest) / scale
    # Gradients must pass through the edit, also where it leaves the numbers.
    return changed + (torch.where(new == added, tensor, changed) - changed).detach()


def _hooks_in_turn(location: Location, edit: Edit) -> Iterator[RemovableHandle]:
    """Hooks on modules that run one after another, whose outputs side by side are the site."""
    modules = [(part.module, part.scale) for part in location.others]
    modules.append((location.module, location.scale))
    done: list[Tensor] = []

    def put(index: int, added: Tensor) -> Tensor:
        del done[index:]  # of an earlier pass
        waiting = [torch.zeros_like(added)] * (len(modules) - index - 1)
        changed = edit(torch.cat([*done, added, *waiting], -1)).chunk(len(modules), -1)[index]
        done.append(changed)
        return changed

    for index, (module, scale) in enumerate(modules):

        def change(tensor: Tensor, index: int = index, scale: float = scale) -> Tensor:
            return _within(tensor, scale, 0, partial(put, index))

        yield _on_output(module, change)


def _on_output(
    module: nn.Module, change: Callable[[Tensor], Tensor], *, place: int = 0
) -> RemovableHandle:
    """A hook that changes a module's output, or the tensor at a place in it."""

    def change_output(module: nn.Module, inputs: Any, output: Any) -> Any:
        if isinstance(output, tuple | list):  # the attention module also returns its weights
            if output[place] is None:  # some return no weights
                return output
            return rebuilt(output, [*output[:place], change(output[place]), *output[place + 1 :]])
        return change(output)

    return module.register_forward_hook(change_output)
