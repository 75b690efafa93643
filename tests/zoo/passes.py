"""Plain passes of a model, what every module gets and gives in them, and changes by hooks."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

Ids = tuple[int, ...]
Edit = Callable[[Tensor], Tensor]
End = Literal["input", "output"]
Change = tuple[str, End, Edit]
"""An edit of the first tensor that a module, given by its path, gets or gives."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a module in a pass."""

    path: str
    given: Tensor | None
    """The first tensor of real numbers among its arguments."""
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
    return type(value)([*value[:place], with_first(value[place], edit), *value[place + 1 :]])


def token_axis(tensor: Tensor, tokens: int) -> int:
    """The axis of a tensor that has one place for each token.

    Raises:
        LookupError: there is none.
    """
    for axis, size in enumerate(tensor.shape):
        if size == tokens:
            return axis
    raise LookupError(f"a tensor of shape {tuple(tensor.shape)} has no axis of the tokens")


class Passes:
    """A model's passes over single prompts, without caches."""

    def __init__(self, hf: PreTrainedModel) -> None:
        self.hf = hf
        self.modules: dict[str, nn.Module] = dict(hf.named_modules())

    @property
    def embedding(self) -> str:
        """The path of the module that embeds tokens."""
        found = self.hf.get_input_embeddings()
        return next(path for path, own in self.modules.items() if own is found)

    def logits(self, ids: Ids) -> Tensor:
        """The last token's logits."""
        found: Tensor = self.hf(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        return found.double()

    @torch.no_grad()
    def log(self, ids: Ids) -> list[Call]:
        """Every call of a module in a pass, in the order in which they end."""
        calls: list[Call] = []

        def see(path: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
                found = first_tensor([args, kwargs]), first_tensor(output)
                calls.append(Call(path, *(None if t is None else t.clone() for t in found)))

            return hook

        with ExitStack() as stack:
            for path, module in self.modules.items():
                hook = module.register_forward_hook(see(path), with_kwargs=True)
                stack.enter_context(removed(hook))
            self.logits(ids)
        return calls

    @torch.no_grad()
    def seen(self, ids: Ids, path: str, changes: Iterable[Change]) -> Tensor:
        """A module's output in a pass with changes.

        Raises:
            LookupError: the module is not called, or gives no tensor.
        """
        seen: list[Tensor] = []

        def see(module: nn.Module, args: Any, output: Any) -> None:
            if (found := first_tensor(output)) is not None:
                seen.append(found.clone())

        with self.changed(changes), removed(self.modules[path].register_forward_hook(see)):
            self.logits(ids)
        if not seen:
            raise LookupError(f"{path} gives no tensor")
        return seen[0]

    @contextmanager
    def changed(self, changes: Iterable[Change]) -> Iterator[None]:
        """Make these changes to passes within the block."""
        with ExitStack() as stack:
            for path, end, edit in changes:
                stack.enter_context(removed(_edit(self.modules[path], end, edit)))
            yield

    @contextmanager
    def eager(self) -> Iterator[None]:
        """Compute attention by plain products of matrices within the block."""
        before = self.hf.config._attn_implementation
        self.hf.set_attn_implementation("eager")
        # For some models (Falcon) it only warns; they read the setting while they run.
        self.hf.config._attn_implementation = "eager"
        try:
            yield
        finally:
            self.hf.set_attn_implementation(before)
            self.hf.config._attn_implementation = before

    @contextmanager
    def changed_weights(self, path: str, tokens: int, edit: Edit) -> Iterator[None]:
        """Pass a layer's attention weights (1, head, query, key) through an edit in the block.

        Transformers' plain attention passes them through dropout, which does nothing here.
        """
        within: list[bool] = []
        functions: Any = nn.functional
        dropout = functions.dropout

        def changed(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if within and tensor.dim() == 4 and tensor.shape[-2:] == (tokens, tokens):
                return edit(tensor)
            return dropout(tensor, *args, **kwargs)

        layer = self.modules[path]
        enter = layer.register_forward_pre_hook(lambda module, args: within.append(True))
        leave = layer.register_forward_hook(lambda module, args, output: within.clear())
        functions.dropout = changed
        try:
            with self.eager(), removed(enter), removed(leave):
                yield
        finally:
            functions.dropout = dropout


def _edit(module: nn.Module, end: End, edit: Edit) -> Any:
    if end == "output":
        return module.register_forward_hook(lambda m, args, output: with_first(output, edit))

    def enter(m: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        if first_tensor(args) is not None:
            return with_first(args, edit), kwargs
        return args, with_first(kwargs, edit)

    return module.register_forward_pre_hook(enter, with_kwargs=True)


@contextmanager
def removed(hook: Any) -> Iterator[None]:
    """Remove a hook when the block ends."""
    try:
        yield
    finally:
        hook.remove()
