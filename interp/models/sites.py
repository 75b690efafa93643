"""Sites (activations that can be read and patched): their locations, and hooks on them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from interp.choices import SITES
from interp.errors import ModelError, UserError
from interp.models.architectures import UNMAPPED_WORKS, layers_of
from interp.models.families.settings import has_several_streams
from interp.models.model import Model

View = Callable[[Float[Tensor, "row token width"]], Float[Tensor, "row token head size"]]
"""The site as a view of a module's tensor; the head axis has size 1 if the site has no heads.
Attention weights, with axes (row, head, query, key), are left as they are.
"""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a layer's site is found in the running model."""

    module: nn.Module
    end: Literal["input", "output", "weights"]
    """The site is the module's first input, its output, or the attention weights that it returns
    with its output.
    """
    view: View
    enters: int
    """The first layer that must run for a patch to take effect; the number of layers if none must
    run.
    """


@contextmanager
def fed_embeddings(model: Model) -> Iterator[None]:
    """Refuse a model that also reads the tokens themselves, such as Gemma 4 (E2B, E4B).

    Raises:
        UserError: the model cannot be run from input embeddings alone.
    """
    try:
        yield
    except RuntimeError as error:
        if "inputs_embeds" not in str(error):
            raise
        raise ModelError(
            f"{model.name} ({model.hf.config.model_type}) reads its tokens in each layer "
            "(per-layer embeddings), so it cannot be run from input embeddings alone, as this "
            f"needs. {UNMAPPED_WORKS}"
        ) from error


def locate(model: Model, site: str, layer: int) -> Location:
    """The location at which a site is read and, unless it acts through another site, patched.

    Raises:
        UserError: the architecture has no such site, or several residual streams.
    """
    if has_several_streams(model.text_config):
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}) has several residual streams (AltUp), "
            f"whose sites are not known here. {UNMAPPED_WORKS}"
        )
    layers = layers_of(model.hf, model.architecture)
    architecture, own = model.architecture, layers[layer]
    if site in ("resid_pre", "resid_post"):
        return _stream(model, layers, layer if site == "resid_pre" else layer + 1)
    if SITES[site].heads is not None:
        return _location_of_heads(model, site, own.get_submodule(architecture.attention), layer)
    if site == "resid_mid":
        reader = _module(model, own, _reader_of_sum(model, own), site)
        return Location(reader, "input", _whole, layer)
    paths = {"attn_out": architecture.attention_out, "mlp_out": architecture.mlp_out}
    return Location(_module(model, own, paths[site], site), "output", _whole, layer)


def _stream(model: Model, layers: Sequence[nn.Module], layer: int) -> Location:
    """The residual stream that a layer reads, or the stream after the last layer."""
    final_norm = model.architecture.final_norm
    if layer < len(layers):
        return Location(layers[layer], "input", _whole, layer)
    if final_norm is None:
        return Location(layers[-1], "output", _whole, layer - 1)
    return Location(model.hf.get_submodule(final_norm), "input", _whole, layer)


def _location_of_heads(model: Model, site: str, attention: nn.Module, layer: int) -> Location:
    model.check_whole(f"the site {site}")
    architecture = model.architecture
    if SITES[site].is_weights:
        if not architecture.causal:
            raise UserError(
                f"the site {site} is not supported for encoders such as {model.name}; omit it, or "
                "patch z, through which it acts"
            )
        return Location(attention, "weights", lambda weights: weights, layer)
    if site == "z":
        module = _module(model, attention, architecture.heads_out, site)
        return Location(module, "input", _own_heads(head_count(model, site)), layer)
    module = _module(model, attention, architecture.qkv["qkv".index(site)], site)
    return Location(module, "output", _heads(model, site), layer)


def layer_count(model: Model) -> int:
    """Number of layers in the model."""
    return len(layers_of(model.hf, model.architecture))


def head_count(model: Model, site: str) -> int:
    """Number of heads in each layer at a site."""
    config = model.text_config
    heads: int = config.num_attention_heads
    if SITES[site].heads == "key-value":
        heads = getattr(config, "num_key_value_heads", None) or heads
    return heads


def check_sites(
    model: Model,
    sites: Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> None:
    """Check that a model has the sites, layers and heads.

    Raises:
        UserError: the model lacks a site, layer or head, or a site has no heads.
    """
    _check_indices("layer", layers, layer_count(model), model)
    for site in sites:
        if heads is not None and SITES[site].heads is None:
            with_heads = ", ".join(own.name for own in SITES.values() if own.heads)
            raise UserError(
                f"got heads, but {site} has none; omit the heads, or use only sites with heads: "
                f"{with_heads}"
            )
        _check_indices(f"{site} head", heads, head_count(model, site), model)
        for layer in range(layer_count(model)):
            for needed in (site, SITES[site].patched_at):
                locate(model, needed, layer)


def _check_indices(kind: str, given: Sequence[int] | None, count: int, model: Model) -> None:
    for index in given or ():
        if not 0 <= index < count:
            raise UserError(
                f"no {kind} {index} in {model.name}, which has {count}; expected 0 to {count - 1}"
            )


def _module(model: Model, parent: nn.Module, path: str, site: str) -> nn.Module:
    try:
        return parent.get_submodule(path)
    except AttributeError as error:
        raise UserError(
            f"the architecture {model.hf.config.model_type!r} lacks the site {site}: its "
            f"{type(parent).__name__} has no module {path}; omit the site"
        ) from error


def _reader_of_sum(model: Model, layer: nn.Module) -> str:
    """The path of the module that reads the residual stream after attention is added to it."""
    reader = model.architecture.mlp_norm
    # The layers of GPT-NeoX may be either.
    parallel = model.architecture.parallel or getattr(layer, "use_parallel_residual", False)
    if reader is None or parallel:
        why = "its norms are on the residual stream itself"
        if parallel:
            why = "attention and MLP read the same residual stream in parallel"
        raise UserError(
            f"the architecture {model.hf.config.model_type!r} lacks the site resid_mid: {why}; "
            "omit the site"
        )
    return reader


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
    return hooked(*(_hook(location, edit) for location, edit in edits))


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
            stack.enter_context(replaced(layer, _identity))
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


def _identity(hidden_states: Activation, *unused: Any, **options: Any) -> Activation:
    return hidden_states


def _hook(location: Location, edit: Edit) -> RemovableHandle:
    if location.end == "input":

        def change_input(module: nn.Module, inputs: Any, named: dict[str, Any]) -> Any:
            if inputs:
                return (edit(inputs[0]), *inputs[1:]), named
            return inputs, {**named, "hidden_states": edit(named["hidden_states"])}

        return location.module.register_forward_pre_hook(change_input, with_kwargs=True)

    place = 1 if location.end == "weights" else 0

    def change_output(module: nn.Module, inputs: Any, output: Any) -> Any:
        if isinstance(output, tuple):  # the attention module also returns its weights
            return (*output[:place], edit(output[place]), *output[place + 1 :])
        return edit(output)

    return location.module.register_forward_hook(change_output)
