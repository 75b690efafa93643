"""Weights: their devices and types, and checks that they fit a configuration."""

import copy
import logging
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import align_module_device
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from transformers import PreTrainedConfig, PreTrainedModel

from interp.errors import UserError, one_line
from interp.models.checkpoint import Stored, settings
from interp.models.families.settings import heads_after_layers
from interp.models.kinds import Kind
from interp.models.quantized import check_stored_quantized, quantization_of


def check_device(name: str) -> None:
    """Raise a UserError unless a device exists and can be used."""
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:
        # For an unknown name, PyTorch would list all its devices.
        unknown = "device type at start of device string" in str(error)
        reason = "no such device" if unknown else one_line(str(error).split(". ")[0], 120)
        raise UserError(
            f"device {one_line(name)!r} cannot be used: {reason}; expected cpu, or cuda or cuda:1 "
            "on a machine with such a GPU"
        ) from error


def device_of(module: nn.Module) -> torch.device:
    """The device that a module's inputs must be on."""
    device = next(module.parameters()).device
    if device.type != "meta":
        return device
    # An offloaded weight is not on any device; accelerate's hook moves it to one when needed.
    # Without a hook, the model is only a skeleton without weights.
    hook: Any = getattr(module, "_hf_hook", None)
    return device if hook is None else torch.device(hook.execution_device)


def one_token(hf: PreTrainedModel) -> dict[str, Tensor]:
    """The inputs of a forward pass that reads a single token."""
    token = torch.zeros(1, 1, dtype=torch.long, device=device_of(hf.get_input_embeddings()))
    inputs = {"input_ids": token}
    if hf.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = token
    return inputs


def is_sharded(tensor: Tensor) -> bool:
    """Whether other processes hold parts of a tensor, as in transformers' tensor parallelism."""
    return hasattr(tensor, "full_tensor")  # a DTensor, whose class takes long to import


def whole(tensor: Tensor) -> Tensor:
    """A tensor with the parts that other processes hold; all of them must call this at once."""
    full: Any = getattr(tensor, "full_tensor", None)
    return tensor if full is None else full()


def weights_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and values of a model's state; offloaded tensors are read one at a time.

    A quantized tensor of torchao consists of several tensors. A sharded tensor is gathered, so all
    processes must read the state at once.
    """
    for name, tensor in model.state_dict().items():
        if is_sharded(tensor):
            yield name, whole(tensor)
            continue
        if is_traceable_wrapper_subclass(tensor):
            for part in tensor.__tensor_flatten__()[0]:
                yield f"{name}.{part}", getattr(tensor, part)
            continue
        if not tensor.is_meta:
            yield name, tensor
            continue
        path, _, attribute = name.rpartition(".")
        module = model.get_submodule(path)
        with align_module_device(module, execution_device=torch.device("cpu")):
            yield name, getattr(module, attribute)


_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")

_CLASSES = ("num_labels",)
_WINDOWS = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}

_MOST = 1_000_000
"""Largest allowed number of layers, experts or classes before the weights are downloaded."""

_MOST_EXPERTS = 1024
"""Largest allowed number of experts in a layer if they are stored as one tensor."""

_FLOATING = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "float", "bfloat")


def check_counts(name: str, config: Mapping[str, Any], stored: Stored | None = None) -> None:
    """Raise a UserError if a raw config.json has more layers or experts than there are tensors.

    The longest tensor bounds the classes. Before weights are downloaded (None), each count must be
    one that a model may have.
    """
    limits = _limits(stored)
    for key, value in settings(config):
        most, why = limits.get(key, (math.inf, ""))
        if isinstance(value, int | float) and value > most:
            raise UserError(f"config.json of {one_line(name)} specifies {key} = {value:.6g}{why}")


def _limits(stored: Stored | None) -> dict[str, tuple[int, str]]:
    """The largest allowed value of each count, and the end of the error about a larger value."""
    if stored is None:
        counts = (*_LAYERS, *_EXPERTS, *_CLASSES)
        return dict.fromkeys(counts, (_MOST, f"; expected at most {_MOST:,}"))
    longest = max((max(tensor.shape, default=0) for tensor in stored.values()), default=0)
    apart = "; the two do not belong together"
    few = f", but its weights are {len(stored):,} tensors{apart}"
    short = f", but its weights have no tensor longer than {longest:,}{apart}"
    return {
        **dict.fromkeys(_LAYERS, (len(stored), few)),
        **dict.fromkeys(_EXPERTS, (max(len(stored), _MOST_EXPERTS), few)),
        **dict.fromkeys(_CLASSES, (longest, short)),
    }


def check_windows(name: str, config: PreTrainedConfig) -> None:
    """Raise a UserError if windowed or chunked attention has no size of its window."""
    text_config = config.get_text_config()
    kinds = getattr(text_config, "layer_types", None) or ()
    for kind, size in _WINDOWS.items():
        if kind in kinds and getattr(text_config, size, None) is None:
            raise UserError(
                f"the configuration of {one_line(name)} has layers of {kind} but no {size}; "
                "expected the number of tokens that they see, or full_attention in layer_types"
            )


def check_sizes(
    name: str, kind: Kind, config: PreTrainedConfig, stored: Stored, *, trust_remote_code: bool
) -> None:
    """Raise a UserError unless the weights are about as many numbers as a model needs, in its type.

    The model is built without allocating memory for its weights.
    """
    with torch.device("meta"):
        model = kind.auto_for(config).from_config(
            copy.deepcopy(config), trust_remote_code=trust_remote_code
        )
    method = quantization_of(config)
    wanted = sum(parameter.numel() for parameter in model.parameters())
    held = sum(tensor.size for tensor in stored.values())
    # The embeddings may also be the unembedding.
    most = 2 * held
    if method is not None:
        # Eight one-bit weights a byte, each used twice.
        most = 16 * sum(tensor.nbytes for tensor in stored.values())
    if wanted > most:
        raise UserError(
            f"the configuration of {one_line(name)} specifies a model of {wanted:,} parameters, "
            f"but its weights hold {held:,} numbers; the two do not belong together"
        )
    computed = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
    # Tables that a model computes, such as masks and rotary tables, have no more bytes.
    if computed > 2**31:
        raise UserError(
            f"the configuration of {one_line(name)} requires tables of {computed / 2**30:,.0f} GiB "
            "in addition to the weights; look for a disproportionate length"
        )
    if method is None:
        _check_floating(name, model, stored)
    else:
        check_stored_quantized(name, method, model, stored)


def _check_floating(name: str, model: nn.Module, stored: Stored) -> None:
    """Reject parameters stored as integers; only masks and positions may be integers."""
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    parameters = {key.removeprefix(prefix) for key, _ in model.named_parameters()}
    for key, tensor in stored.items():
        is_parameter = key.endswith(".weight") or key.removeprefix(prefix) in parameters
        if is_parameter and not tensor.dtype.startswith(_FLOATING):
            raise UserError(
                f"the tensor {one_line(key)} of {one_line(name)} holds {tensor.dtype}, but "
                "the configuration has no quantization_config to interpret it; expected "
                "floating-point weights"
            )


_SHOWN = 3
"""Largest number of tensors named in a message."""

_BUFFERS = re.compile(r"(\.(attn|attention)\.(bias|masked_bias)|rotary_emb\..*|inv_freq)$")
"""Masks and rotary tables, which models compute but old checkpoints store."""


_ACTIVATIONS = re.compile(r"(input|activation|output|[qkv])_(global_)?(scale|zero_point)$")
"""Settings for rounding activations, which a model with dequantized weights has no use for."""


def check_complete(
    name: str, hf: PreTrainedModel, info: Mapping[str, Any], *, quantized: bool = False
) -> tuple[str, ...]:
    """Raise a UserError if tensors do not fit the configuration, and return notes about others.

    Unused tensors outside the model's layers, such as a reward head, a vision tower or heads for
    several tokens at once, do not affect its answers and are noted, as are the scales of a
    quantized checkpoint. Unused tensors in one of its layers, or in an additional layer, show that
    the weights belong to another configuration. `info` is transformers' `output_loading_info`, and
    `quantized` tells whether the stored weights are.
    """
    missing = sorted(info["missing_keys"])
    if missing:
        raise UserError(
            f"the weights of {one_line(name)} lack {some(missing)}, which would be "
            "initialized at random; expected a checkpoint that belongs to its configuration"
        )
    for key, stored, expected in sorted(info["mismatched_keys"]):
        raise UserError(
            f"the tensor {one_line(key)} of {one_line(name)} has the shape {tuple(stored)}, but "
            f"the configuration requires {tuple(expected)}; the two do not belong together"
        )
    unexpected = sorted(info["unexpected_keys"])
    used = [key for key in unexpected if not (quantized and _ACTIVATIONS.search(key))]
    foreign = [key for key in used if _belongs_to_layers(hf, key)]
    if foreign and getattr(hf.config, "quantization_config", None) is None:
        raise UserError(
            f"the weights of {one_line(name)} hold {some(foreign)}, which a model with its "
            "configuration would ignore; expected a checkpoint that belongs to its configuration"
        )
    if not unexpected:
        return ()
    return (f"the weights of {one_line(name)} hold {some(unexpected)}, which the model ignores",)


@contextmanager
def quiet_report() -> Iterator[None]:
    """Silence transformers' log of missing weights in the block; `check_complete` reports them."""

    def passes(record: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in record.getMessage()

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(passes)
    try:
        yield
    finally:
        logger.removeFilter(passes)


def _belongs_to_layers(hf: PreTrainedModel, key: str) -> bool:
    """Whether a tensor belongs to one of the model's modules with weights, or to a layer."""
    if _BUFFERS.search(key):
        return False
    prefix = hf.base_model_prefix
    names = (key, f"{prefix}.{key}", key.removeprefix(f"{prefix}."))
    return any(_in_layers(hf, name) or _in_weights(hf, name) for name in names)


def _in_layers(hf: PreTrainedModel, key: str) -> bool:
    extra = heads_after_layers(hf.config.get_text_config())
    for path, module in hf.named_modules():
        if isinstance(module, nn.ModuleList) and key.startswith(f"{path}."):
            number = key.removeprefix(f"{path}.").partition(".")[0]
            heads = range(len(module), len(module) + extra)
            if number.isdecimal() and int(number) not in heads:
                return True
    return False


def _in_weights(hf: PreTrainedModel, key: str) -> bool:
    try:
        module = hf.get_submodule(key.rpartition(".")[0])
    except AttributeError:
        return False
    return not list(module.children()) and bool(list(module.parameters()))


def some(keys: Collection[str]) -> str:
    """The first few tensor names, and the number of remaining names."""
    shown = ", ".join(one_line(key, 60) for key in list(keys)[:_SHOWN])
    further = len(keys) - _SHOWN
    return f"{shown} and {further:,} more" if further > 0 else shown
