"""What every module of a model reads and returns in one pass over a few tokens."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from interp.models.weights import device_of

Vectors = Float[Tensor, "1 token *size"]
"""One vector for each token, or several, such as those of parallel streams."""

_TOKENS = 12
"""Number of tokens in the pass."""


@dataclass(slots=True)
class Run:
    """What a module read and returned in the pass."""

    path: str
    module: nn.Module
    order: int
    """Its rank among the modules' ends."""
    read: Float[Tensor, "1 token *read"] | None
    returned: Float[Tensor, "1 token *returned"] | None
    flat: bool
    """Whether it returned the tokens of all rows one after another."""
    flat_read: bool
    """Whether it read them so."""
    alone: bool
    """Whether it returned nothing else."""
    handed: Tensor | None
    """The copy of its output that the model went on with."""

    @property
    def is_norm(self) -> bool:
        """Whether it is a norm, by its name."""
        kind = type(self.module).__name__.lower()
        return not [*self.module.children()] and ("norm" in kind or "ln" in kind)


class CannotMeasureError(RuntimeError):
    """A model's own code fails in a pass over a few tokens, or gives no gradients."""


@contextmanager
def models_code() -> Iterator[None]:
    """Raise `CannotMeasureError` for errors of a model's own code, unless memory ends."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise CannotMeasureError(str(error)) from error


def runs_of(hf: PreTrainedModel) -> tuple[dict[nn.Module, Run], set[nn.Module]]:
    """Modules that ran once on a few tokens, and several times; or a CannotMeasureError."""
    all_runs: dict[nn.Module, list[Run]] = {}
    ends = count()

    def note(path: str, module: nn.Module, given: Any, named: dict[str, Any], output: Any) -> Any:
        several = isinstance(output, tuple | list)
        returned = output[0] if several and output else output
        stream, flat = _stream(returned)
        read, flat_read = _stream(given[0] if given else named.get("hidden_states"))
        # What follows may change the tensor in place.
        copy = None if stream is None else returned.clone()
        run = Run(path, module, next(ends), read, stream, flat, flat_read, not several, copy)
        all_runs.setdefault(module, []).append(run)
        if copy is None:
            return None
        return rebuilt(output, [copy, *output[1:]]) if several else copy

    def enter(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return output.detach().requires_grad_().clone()

    with ExitStack() as stack:
        embedding: nn.Module = hf.get_input_embeddings()
        stack.callback(embedding.register_forward_hook(enter).remove)
        for path, module in hf.named_modules():
            hook = module.register_forward_hook(partial(note, path), with_kwargs=True)
            stack.callback(hook.remove)
        ids = _some_tokens(hf)[None]
        with models_code():
            hf(input_ids=ids, use_cache=False)
    once = {module: runs[0] for module, runs in all_runs.items() if len(runs) == 1}
    return once, all_runs.keys() - once.keys()


def rebuilt(output: Any, items: Sequence[Any]) -> Any:
    """A tuple or list of another one's type, which may have names for its items."""
    kind = type(output)
    return kind(*items) if hasattr(output, "_fields") else kind(items)


def _stream(value: Any) -> tuple[Vectors | None, bool]:
    """A value as the vectors of one prompt's tokens, if it holds them, and whether it is flat."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return None, False
    if value.dim() == 2 and len(value) == _TOKENS:
        return value[None], True
    fits = value.shape[:2] == (1, _TOKENS) and value.dim() in (3, 4)
    return (value, False) if fits else (None, False)


def _some_tokens(hf: PreTrainedModel) -> Tensor:
    """A few different tokens, none of which has a special meaning."""
    settings = {**hf.config.to_dict(), **hf.config.get_text_config().to_dict()}
    special = {value for value in settings.values() if type(value) is int}
    embedding: Any = hf.get_input_embeddings()
    size = embedding.weight.shape[0]
    ordinary = [token for token in range(size) if token not in special] or [*range(size)]
    step = max(1, len(ordinary) // _TOKENS)
    chosen = [ordinary[index * step % len(ordinary)] for index in range(_TOKENS)]
    return torch.tensor(chosen, device=device_of(embedding))
