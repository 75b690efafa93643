"""Storage of weights: on which devices, offloaded or not, and in how many bits."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import torch
from accelerate.utils import align_module_device
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedConfig

from interp.choices import Quantization
from interp.errors import UserError, one_line


def check_device(name: str) -> None:
    """Check that a device exists and can be used.

    Raises:
        UserError: the device cannot be used.
    """
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:
        # For an unknown name PyTorch lists all its devices.
        unknown = "device type at start of device string" in str(error)
        reason = "no such device" if unknown else one_line(str(error).split(". ")[0], 120)
        raise UserError(
            f"device {one_line(name)!r} cannot be used: {reason}; expected cpu, or cuda or cuda:1 "
            "on a machine with such a GPU"
        ) from error


def device_of(module: nn.Module) -> torch.device:
    """The device to which a module's inputs go."""
    device = next(module.parameters()).device
    if device.type != "meta":
        return device
    # An offloaded weight is on no device; accelerate's hook brings it to a device when needed.
    # Without a hook the model is an outline, which has no weights.
    hook: Any = getattr(module, "_hf_hook", None)
    return device if hook is None else torch.device(hook.execution_device)


def weights_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and values in a model's state; offloaded tensors are read one at a time."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_meta:
            yield name, tensor
            continue
        path, _, own = name.rpartition(".")
        module = model.get_submodule(path)
        with align_module_device(module, execution_device=torch.device("cpu")):
            yield name, getattr(module, own)


def quantization_config(quantization: Quantization, *, compute: torch.dtype) -> BitsAndBytesConfig:
    """The configuration with which transformers quantizes the linear layers when it loads them.

    Args:
        quantization: 8bit or 4bit.
        compute: the type in which 4-bit weights are multiplied.

    Raises:
        UserError: bitsandbytes is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise UserError(
            f"quantization {quantization!r} needs bitsandbytes, which is not installed; "
            "pip install bitsandbytes"
        )
    settings: dict[str, Any] = {"load_in_8bit": True}
    if quantization == "4bit":
        settings = {
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_compute_dtype": compute,
        }
    # transformers does not annotate this function.
    return BitsAndBytesConfig(**settings)  # type: ignore[no-untyped-call]


def quantization_of(config: PreTrainedConfig) -> str | None:
    """How the weights of a model are quantized, such as "bitsandbytes 4bit nf4"; None if not."""
    own = getattr(config, "quantization_config", None)
    if own is None:
        return None
    settings = own if isinstance(own, dict) else own.to_dict()
    method = settings.get("quant_method", "unknown method")
    words = [str(getattr(method, "value", method))]
    if settings.get("load_in_8bit"):
        words.append("8bit")
    if settings.get("load_in_4bit"):
        words += ["4bit", settings["bnb_4bit_quant_type"]]
    return " ".join(words)


def check_blocks(name: str, hf: nn.Module) -> None:
    """Check a limit of bitsandbytes on a CPU: 4-bit weights must have rows of whole blocks.

    Raises:
        UserError: the rows of a weight are not a multiple of its block.
    """
    for where, module in hf.named_modules():
        weight = getattr(module, "weight", None)
        block = getattr(getattr(weight, "quant_state", None), "blocksize", None)
        if block is None or weight is None or weight.device.type != "cpu":
            continue
        inputs = getattr(module, "in_features", 0)
        if inputs % block:
            raise UserError(
                f"the model {one_line(name)!r} cannot run in 4 bits on a CPU: bitsandbytes needs "
                f"the inputs of a layer to be a multiple of {block} there, and {where} has "
                f"{inputs}; load it in 8bit, without quantization, or on a GPU"
            )
