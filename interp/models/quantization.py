"""Weights kept in fewer bits: what bitsandbytes makes of a model, and what a checkpoint brings."""

from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from transformers import BitsAndBytesConfig, PreTrainedConfig

from interp.choices import Quantization
from interp.errors import UserError, one_line


def quantization_config(quantization: Quantization, *, compute: torch.dtype) -> BitsAndBytesConfig:
    """The configuration by which transformers quantizes the linear layers as they are loaded.

    Args:
        quantization: 8bit or 4bit.
        compute: what weights of 4 bits become when they are multiplied.

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
    # transformers gives this function no types.
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
    """On a CPU, bitsandbytes multiplies weights of 4 bits by rows of whole blocks alone.

    Raises:
        UserError: the rows of a weight are no multiple of its block.
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
