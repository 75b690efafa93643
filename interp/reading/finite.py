"""Where logits that are not finite come from: a weight, or the first module that computes one."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from interp.errors import UserError
from interp.models.model import Model
from interp.models.weights import weights_of
from interp.reading.readers import reader_of
from interp.reading.tokens import TokenizedPrompt, pad


@torch.no_grad()
def check_finite(model: Model, prompt: TokenizedPrompt) -> None:
    """Check that a model's logits for a prompt are finite.

    Raises:
        UserError: they are not. It names the first tensor of the weights that holds a number that
            is not finite; where all are, the first module that computes one.
    """
    first: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(model.measuring())
        for path, module in model.hf.named_modules():
            # Of modules within each other the innermost ends first.
            hook = _noting(f"{path} ({type(module).__name__})", first)
            stack.callback(module.register_forward_hook(hook).remove)
        logits = reader_of(model).answer_logits(pad(model, [prompt]))
    if _is_finite(logits):
        return
    stored = next((name for name, own in weights_of(model.hf) if not _is_finite(own)), None)
    if stored is not None:
        where = f"its weights hold such numbers, first in {stored}"
        advice = "take another copy of the model"
    else:
        where = f"its weights are finite, and {first[0] if first else 'its head'} is the first part"
        where += " that gives such numbers"
        advice = "look for a setting in its config.json, or a weight, that is out of proportion"
    if model.dtype == "float16":
        advice = "float16 ends at 65,504, so load it with --dtype bfloat16 or float32"
    raise UserError(
        f"the logits of {model.name} are not finite (NaN or infinite): {where}; {advice}"
    )


def _noting(name: str, names: list[str]) -> Callable[[nn.Module, Any, Any], None]:
    """A hook that notes the name of a module whose output is not finite."""

    def note(module: nn.Module, inputs: Any, output: Any) -> None:
        own = output[0] if isinstance(output, tuple) and output else output
        if isinstance(own, Tensor) and not _is_finite(own):
            names.append(name)

    return note


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())
