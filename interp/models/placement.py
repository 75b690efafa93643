"""Where the weights of a model are when accelerate keeps some of them off the devices."""

from collections.abc import Iterator
from typing import Any

import torch
from accelerate.utils import align_module_device
from torch import Tensor, nn


def device_of(module: nn.Module) -> torch.device:
    """The device that a module's inputs go to."""
    device = next(module.parameters()).device
    if device.type != "meta":
        return device
    # An offloaded weight is on no device; accelerate's hook brings it to one when it is needed.
    # Without a hook the model is an outline, which has no weights.
    hook: Any = getattr(module, "_hf_hook", None)
    return device if hook is None else torch.device(hook.execution_device)


def weights_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and values of what a model's state holds; what is offloaded is read one at a time."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_meta:
            yield name, tensor
            continue
        path, _, own = name.rpartition(".")
        module = model.get_submodule(path)
        with align_module_device(module, execution_device=torch.device("cpu")):
            yield name, getattr(module, own)
