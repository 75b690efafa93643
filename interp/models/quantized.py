"""Quantized weights: checkpoints that store them, and quantization while loading.

transformers reads a quantized checkpoint by the `quantization_config` in its config.json. It
ignores methods that it does not know, and for some methods also a configuration beside ordinary
weights; both are refused here.
"""

import copy
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedConfig, PreTrainedModel

from interp.choices import Quantization
from interp.errors import UserError, described, nearest, one_line, shortened
from interp.models.checkpoint import Stored, as_user_error, settings

KEY = "quantization_config"

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
    return BitsAndBytesConfig(**settings)


def quantization_of(config: PreTrainedConfig) -> str | None:
    """Quantization of a model's weights, such as "bitsandbytes 4bit nf4"; None if not quantized."""
    scheme = _own_settings(config)
    return None if scheme is None else _in_words(scheme)


def _own_settings(config: PreTrainedConfig) -> dict[str, Any] | None:
    for part in (config, config.get_text_config()):
        scheme = getattr(part, KEY, None)
        if scheme is not None:
            return scheme if isinstance(scheme, dict) else dict(scheme.to_dict())
    return None


def can_dequantize(config: PreTrainedConfig) -> bool:
    """Whether transformers can turn a checkpoint's quantized weights into ordinary weights."""
    scheme = _own_settings(config)
    return scheme is not None and (_dequantizes_at_load(scheme) or _dequantizes_later(scheme))


def dequantizing(name: str, config: PreTrainedConfig) -> dict[str, Any]:
    """The options with which transformers dequantizes a checkpoint's weights as it loads them.

    They are empty if it dequantizes only models that are loaded already.

    Raises:
        UserError: the weights are not quantized, or transformers cannot dequantize their format.
    """
    from transformers.quantizers.auto import AutoQuantizationConfig

    scheme = _own_settings(config)
    if scheme is None:
        raise UserError(
            f"got dequantize, but the weights of {one_line(name)} are not quantized; omit it"
        )
    if _dequantizes_at_load(scheme):
        with quantized_weights(name, _in_words(scheme)):
            made = AutoQuantizationConfig.from_dict({**copy.deepcopy(scheme), "dequantize": True})
        return {KEY: made}
    if not _dequantizes_later(scheme):
        raise UserError(
            f"the weights of {one_line(name)} are quantized by {_in_words(scheme)}, which "
            "transformers cannot dequantize; omit dequantize, or pass a checkpoint with ordinary "
            "weights"
        )
    return {}


def _dequantizes_at_load(scheme: Mapping[str, Any]) -> bool:
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    made = AUTO_QUANTIZATION_CONFIG_MAPPING.get(_method(scheme))
    return made is not None and "dequantize" in inspect.signature(made).parameters


def _dequantizes_later(scheme: Mapping[str, Any]) -> bool:
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
    from transformers.quantizers.base import HfQuantizer

    quantizer: Any = AUTO_QUANTIZER_MAPPING.get(_method(scheme), HfQuantizer)
    return bool(quantizer._dequantize is not HfQuantizer._dequantize)


def _method(scheme: Mapping[str, Any]) -> str:
    for bits in ("4bit", "8bit"):
        if scheme.get(f"load_in_{bits}"):
            return f"bitsandbytes_{bits}"
    method = scheme.get("quant_method")
    return str(getattr(method, "value", method))


def dequantized(name: str, hf: PreTrainedModel) -> PreTrainedModel:
    """A loaded model with ordinary weights, which it may have already; a UserError if it cannot."""
    if getattr(hf, "hf_quantizer", None) is None:
        return hf
    with quantized_weights(name, quantization_of(hf.config)):
        made: PreTrainedModel = hf.dequantize()
    return made


def without_marks(hf: PreTrainedModel) -> PreTrainedModel:
    """The model; if its weights are dequantized, no part of its configuration says otherwise."""
    if getattr(hf, "hf_quantizer", None) is None:
        for part in (hf.config, hf.config.get_text_config()):
            vars(part).pop(KEY, None)
    return hf


def _in_words(settings: Mapping[str, Any]) -> str:
    method = settings.get("quant_method", "unknown method")
    words = [str(getattr(method, "value", method))]
    if settings.get("load_in_8bit"):
        words.append("8bit")
    if settings.get("load_in_4bit"):
        words += ["4bit", str(settings.get("bnb_4bit_quant_type", "fp4"))]
    return one_line(" ".join(words))


def check_quantization(name: str, config: Mapping[str, Any]) -> None:
    """Raise a UserError unless transformers understands every quantization in a raw config.json.

    Missing packages and devices are reported when the weights are loaded, because the
    configuration and tokenizer of a model can also be used without them.
    """
    for key, value in settings(config):
        if key == KEY and value is not None:
            _check_settings(f"{KEY} in config.json of {one_line(name)}", value)


def _check_settings(what: str, scheme: object) -> None:
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING, AutoQuantizationConfig

    if not isinstance(scheme, dict):
        raise UserError(f"{what} is {described(scheme)}; expected an object with a quant_method")
    method = scheme.get("quant_method")
    bits = scheme.get("load_in_8bit") or scheme.get("load_in_4bit")
    known = isinstance(method, str) and method in AUTO_QUANTIZER_MAPPING
    if not known and not (bits and method in (None, "bitsandbytes")):
        near = nearest(str(method), AUTO_QUANTIZER_MAPPING)
        raise UserError(
            f"{what}: unknown quant_method {shortened(repr(method))}; "
            f"{f'did you mean {near}?' if near else 'expected one such as gptq or awq.'} "
            "transformers would ignore it; convert the weights to a format that it reads"
        )
    for pattern in filter(_SLOW.search, _texts(scheme)):
        raise UserError(
            f"{what} has the pattern {one_line(pattern)!r}, whose matching can take forever; "
            "expected names of modules"
        )
    try:
        AutoQuantizationConfig.from_dict(copy.deepcopy(scheme))
    except ImportError:
        return
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 160)
        raise UserError(
            f"{what} ({_in_words(scheme)}) cannot be read: {reason}. Expected settings as "
            "transformers saves them with a quantized model"
        ) from error


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def check_stored_quantized(name: str, method: str, model: nn.Module, stored: Stored) -> None:
    """Raise a UserError if a checkpoint with a quantization stores the weights without it."""
    # It may store ordinary weights, and quantizes them in each forward pass.
    if method.partition(" ")[0] == "bitnet":
        return
    ends = {"weight", "bias"}
    for names in (model.named_parameters(), model.named_buffers()):
        ends |= {key.rpartition(".")[2] for key, _ in names}
    if all(
        tensor.dtype in _WHOLE and key.rpartition(".")[2] in ends for key, tensor in stored.items()
    ):
        types = ", ".join(sorted({tensor.dtype for tensor in stored.values()}))
        raise UserError(
            f"config.json of {one_line(name)} has a {KEY} ({method}), but its weights are "
            f"ordinary numbers ({types}); remove the {KEY} to load them as they are, or pass the "
            "checkpoint that holds the quantized weights"
        )


def quantized_weights(
    name: str, method: str | None, *, also: str = ""
) -> AbstractContextManager[None]:
    """Turn errors within the block into UserErrors that name the quantization, and `also`."""
    if method is None:
        return as_user_error("its weights", name)
    return as_user_error(
        f"its weights, quantized by {method}",
        name,
        expected="a quantized checkpoint that transformers can load with the packages and devices "
        f"of this machine{also}; docs/formats.md lists the formats",
    )


def run_eagerly(hf: nn.Module) -> None:
    """Run BitNet's layers as written, where transformers would compile parts of each pass.

    Compiling needs a C compiler and many seconds, and fails if warnings are errors, since it reads
    the gradients of tensors that have none.
    """
    for module in hf.modules():
        if type(module).__module__ == "transformers.integrations.bitnet":
            module.forward = torch.compiler.set_stance("force_eager")(module.forward)


def blocking_module(hf: PreTrainedModel, inputs: Mapping[str, Tensor]) -> str | None:
    """The path of a quantized layer through which no gradient passes; None if there is none.

    Formats that also round activations may have a derivative of zero everywhere, although
    transformers lists them as trainable. Each layer computes one token again.
    """
    blocking: list[str] = []
    random = torch.Generator().manual_seed(0)

    def check(path: str, layer: nn.Module, given: Any, output: Any) -> None:
        # Not the given rows, which are zero if the token is padding.
        rows = torch.randn(given[0].shape, generator=random).to(given[0]).requires_grad_()
        with torch.enable_grad():
            try:
                made = layer.forward(rows)
                weights = torch.randn(made.shape, generator=random).to(made)
                (gradient,) = torch.autograd.grad(made, rows, weights)
            except RuntimeError:  # there is no backward pass
                blocking.append(path)
                return
        if 2 * gradient.count_nonzero() < gradient.numel():
            blocking.append(path)

    with ExitStack() as stack, torch.no_grad():
        for path, module in hf.named_modules():
            if hasattr(module, "in_features") and not [*module.children()]:
                stack.callback(module.register_forward_hook(partial(check, path)).remove)
        hf(**inputs)
    return blocking[0] if blocking else None


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
    """Raise a UserError if rows of 4-bit weights on a CPU are not of whole blocks."""
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
