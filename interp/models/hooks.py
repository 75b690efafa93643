"""Hooks on a model: read sites, change them, skip layers; all gone when their block ends."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from interp.models.model import Model
from interp.models.sites import Location

Activation = Float[Tensor, "row token width"] | Float[Tensor, "row head query key"]
Edit = Callable[[Activation], Activation]
Key = TypeVar("Key", bound=Hashable)


@contextmanager
def edited(location: Location, edit: Edit) -> Iterator[None]:
    """Within the block the tensor of a location passes through `edit`."""
    with hooked(_hook(location, edit)):
        yield


@contextmanager
def hooked(*handles: RemovableHandle) -> Iterator[None]:
    """Within the block hooks that have been set stay; then they are removed."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watched(locations: Iterable[Location], see: Callable[[Tensor], None]) -> Iterator[None]:
    """Within the block `see` is called with the tensor of each location, as it passes."""

    def look(tensor: Tensor) -> Tensor:
        see(tensor)
        return tensor

    with ExitStack() as stack:
        for location in locations:
            stack.enter_context(edited(location, look))
        yield


@contextmanager
def recorded(locations: Mapping[Key, Location]) -> Iterator[dict[Key, Activation]]:
    """Within the block the tensor of each location is kept, whole, under the location's key."""
    values: dict[Key, Activation] = {}

    def keep(key: Key) -> Edit:
        def record(tensor: Activation) -> Activation:
            values[key] = tensor
            return tensor

        return record

    with ExitStack() as stack:
        for key, location in locations.items():
            stack.enter_context(edited(location, keep(key)))
        yield values


@contextmanager
def skipped(layers: Sequence[nn.Module]) -> Iterator[None]:
    """Within the block these layers hand on what they are given."""
    with ExitStack() as stack:
        for layer in layers:
            stack.enter_context(replaced(layer, _identity))
        yield


@contextmanager
def replaced(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Within the block a module computes something else; its hooks stay."""
    original = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        del module.forward
        if original is not None:  # someone else, such as accelerate, had replaced it already
            module.forward = original


def eager_attention(model: Model) -> AbstractContextManager[None]:
    """Within the block the model computes attention weights openly; restored afterwards."""
    return attention_by(model, "eager")


@contextmanager
def attention_by(model: Model, implementation: str) -> Iterator[None]:
    """Within the block the model's attention is computed by another function of transformers."""
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
        if isinstance(output, tuple):  # attention gives its weights as well
            return (*output[:place], edit(output[place]), *output[place + 1 :])
        return edit(output)

    return location.module.register_forward_hook(change_output)
