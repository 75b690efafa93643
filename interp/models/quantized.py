"""Quantized weights: checkpoints that store them, and quantization while loading.

transformers reads a quantized checkpoint by the `quantization_config` in its config.json. It
ignores methods that it does not know, and for some methods also a configuration beside ordinary
weights; both are refused here.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from transformers import BitsAndBytesConfig, PreTrainedConfig, PreTrainedModel

from interp.choices import Quantization
from interp.errors import UserError, described, nearest, one_line, shortened
from interp.models.checkpoint import Stored, as_user_error, settings

KEY = "quantization_config"

_IN_FORWARD = frozenset({"bitnet"})
"""Methods that may store ordinary weights and quantize them in each forward pass."""

_SLOW = re.compile(r"\)[*+{]|([*+{].*){6}", re.DOTALL)
"""Patterns of modules whose matching can take forever: repeated groups, or many repetitions."""

_WHOLE = ("F64", "F32", "F16", "BF16", "float64", "float32", "float16", "bfloat16")
"""Types of weights that are not quantized, in safetensors and in PyTorch."""


def quantization_config(quantization: Quantization, *, compute: torch.dtype) -> BitsAndBytesConfig:
    """The configuration with which transformers quantizes linear layers on loading.

    Products with 4-bit weights are computed in the type `compute`.

    Raises:
        UserError: bitsandbytes is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise UserError(
            f"quantization {quantization!r} needs bitsandbytes, which is not installed; run pip "
            "install bitsandbytes"
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
    """Quantization of a model's weights, such as "bitsandbytes 4bit nf4"; None if not quantized."""
    for part in (config, config.get_text_config()):
        own = getattr(part, KEY, None)
        if own is not None:
            return _in_words(own if isinstance(own, dict) else own.to_dict())
    return None


def _in_words(settings: Mapping[str, Any]) -> str:
    method = settings.get("quant_method", "unknown method")
    words = [str(getattr(method, "value", method))]
    if settings.get("load_in_8bit"):
        words.append("8bit")
    if settings.get("load_in_4bit"):
        words += ["4bit", str(settings.get("bnb_4bit_quant_type", "fp4"))]
    return one_line(" ".join(words))


def check_quantization(name: str, config: Mapping[str, Any]) -> None:
    """Check that transformers understands every quantization in a raw config.json.

    Missing packages and devices are reported when the weights are loaded, because the
    configuration and tokenizer of a model can also be used without them.

    Raises:
        UserError: a quantization is not an object, has an unknown method or invalid settings, or
            contains a pattern whose matching can take forever.
    """
    for key, own in settings(config):
        if key == KEY and own is not None:
            _check_settings(f"{KEY} in config.json of {one_line(name)}", own)


def _check_settings(what: str, own: object) -> None:
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING, AutoQuantizationConfig

    if not isinstance(own, dict):
        raise UserError(f"{what} is {described(own)}; expected an object with a quant_method")
    method = own.get("quant_method")
    bits = own.get("load_in_8bit") or own.get("load_in_4bit")
    known = isinstance(method, str) and method in AUTO_QUANTIZER_MAPPING
    if not known and not (bits and method in (None, "bitsandbytes")):
        near = nearest(str(method), AUTO_QUANTIZER_MAPPING)
        raise UserError(
            f"{what}: unknown quant_method {shortened(repr(method))}; "
            f"{f'did you mean {near}?' if near else 'expected one such as gptq or awq.'} "
            "transformers would ignore it; convert the weights to a format that it reads"
        )
    for pattern in filter(_SLOW.search, _texts(own)):
        raise UserError(
            f"{what} has the pattern {one_line(pattern)!r}, whose matching can take forever; "
            "expected names of modules"
        )
    try:
        AutoQuantizationConfig.from_dict(copy.deepcopy(own))
    except ImportError:
        return
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 160)
        raise UserError(
            f"{what} ({_in_words(own)}) cannot be read: {reason}. Expected settings as "
            "transformers saves them with a quantized model"
        ) from error


def _texts(value: object) -> Iterator[str]:
    """All strings in a value read from JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def check_stored_quantized(name: str, method: str, model: nn.Module, stored: Stored) -> None:
    """Check that the tensors of a checkpoint with a quantization are quantized.

    Raises:
        UserError: they are the tensors of the model without quantization.
    """
    if method.partition(" ")[0] in _IN_FORWARD:
        return
    own = {"weight", "bias"}
    for names in (model.named_parameters(), model.named_buffers()):
        own |= {key.rpartition(".")[2] for key, _ in names}
    if all(
        tensor.dtype in _WHOLE and key.rpartition(".")[2] in own for key, tensor in stored.items()
    ):
        types = ", ".join(sorted({tensor.dtype for tensor in stored.values()}))
        raise UserError(
            f"config.json of {one_line(name)} has a {KEY} ({method}), but its weights are "
            f"ordinary numbers ({types}); remove the {KEY} to load them as they are, or pass the "
            "checkpoint that holds the quantized weights"
        )


@contextmanager
def quantized_weights(name: str, method: str | None) -> Iterator[None]:
    """Turn errors within the block into UserErrors that name the quantization of the weights."""
    if method is None:
        with as_user_error("its weights", name):
            yield
        return
    with as_user_error(
        f"its weights, quantized by {method}",
        name,
        expected="a quantized checkpoint that transformers can load with the packages and devices "
        "of this machine; docs/gpu.md lists the formats",
    ):
        yield


def run_eagerly(hf: nn.Module) -> None:
    """Run BitNet's layers as written, where transformers would compile parts of each pass.

    Compiling needs a C compiler and many seconds, and fails if warnings are errors, since it reads
    the gradients of tensors that have none.
    """
    for module in hf.modules():
        if type(module).__module__ == "transformers.integrations.bitnet":
            module.forward = torch.compiler.set_stance("force_eager")(module.forward)


def check_differentiable(name: str, hf: PreTrainedModel, what: str) -> None:
    """Check that gradients pass through a model's weights.

    Raises:
        UserError: transformers has no backward pass for their format.
    """
    quantizer: Any = getattr(hf, "hf_quantizer", None)
    if quantizer is not None and not quantizer.is_trainable:
        raise UserError(
            f"{what} needs gradients, but the weights of {one_line(name)} are quantized by "
            f"{quantization_of(hf.config)}, for which transformers has no backward pass; use "
            "methods that need no gradient, or weights in another format (docs/gpu.md)"
        )


def keep_unpacked(hf: nn.Module) -> None:
    """Let 4-bit layers on a CPU compute with the weights that they stand for.

    On processors with bfloat16 instructions, bitsandbytes packs a layer's weights anew in its first
    pass without gradients. From then on it computes in bfloat16 and without a backward pass, so
    that numbers depend on the machine and on what was measured before.
    """
    for module in hf.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            layer: Any = module
            layer.support_avx512bf16_for_cpu = False


def check_blocks(name: str, hf: nn.Module) -> None:
    """Check that rows of 4-bit weights consist of whole blocks, as bitsandbytes requires on a CPU.

    Raises:
        UserError: a weight's row length is not a multiple of its block size.
    """
    for where, module in hf.named_modules():
        weight: Any = getattr(module, "weight", None)
        block = getattr(getattr(weight, "quant_state", None), "blocksize", None)
        inputs = getattr(module, "in_features", 0)
        if block is not None and weight.device.type == "cpu" and inputs % block:
            raise UserError(
                f"the model {one_line(name)!r} cannot run in 4 bits on a CPU, where bitsandbytes "
                f"needs the number of inputs of a layer to be a multiple of {block}: {where} has "
                f"{inputs}; load it in 8bit, without quantization, or on a GPU"
            )
