"""Whether all of a model came from its checkpoint, and all of the checkpoint is in the model.

transformers fills what is missing with random numbers and leaves aside what it does not know. A
model whose parts are random, or are left out, gives numbers that look like any other's.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from interp.errors import UserError, one_line

_SHOWN = 3
"""Tensors that a message names."""

_BUFFERS = re.compile(r"(\.(attn|attention)\.(bias|masked_bias)|rotary_emb\..*|inv_freq)$")
"""Masks and rotary tables, which older checkpoints store and every model computes for itself."""


def check_complete(name: str, hf: PreTrainedModel, info: Mapping[str, Any]) -> tuple[str, ...]:
    """Check transformers' account of what was loaded; returns notes about it.

    What is stored outside the model's layers, such as a reward head, vision tower or heads for
    several tokens at once, takes no part in its answers and is noted. What is within a layer, or
    in a further one, says that the weights are those of another configuration. A quantized
    checkpoint keeps scales next to its weights, under names that depend on the method:
    they are noted.

    Args:
        name: the model's.
        hf: the loaded model.
        info: transformers' `output_loading_info`.

    Raises:
        UserError: weights are missing, of other shapes, or belong to another configuration.
    """
    missing = sorted(info["missing_keys"])
    if missing:
        raise UserError(
            f"the weights of {one_line(name)} lack {some(missing)}, which would be random "
            "numbers; expected a checkpoint that belongs to its config.json"
        )
    for key, stored, expected in sorted(info["mismatched_keys"]):
        raise UserError(
            f"the tensor {one_line(key)} of {one_line(name)} has the shape {tuple(stored)}, "
            f"config.json asks for {tuple(expected)}; the two do not belong together"
        )
    unexpected = sorted(info["unexpected_keys"])
    foreign = [key for key in unexpected if _belongs_to_layers(hf, key)]
    if foreign and getattr(hf.config, "quantization_config", None) is None:
        raise UserError(
            f"the weights of {one_line(name)} hold {some(foreign)}, which a model of its "
            "config.json would leave out; expected a checkpoint that belongs to it"
        )
    if not unexpected:
        return ()
    return (f"the weights of {one_line(name)} hold {some(unexpected)}, which the model leaves out",)


@contextmanager
def quiet_report() -> Iterator[None]:
    """Within the block transformers logs no table of missing weights: `check_complete` does."""

    def passes(record: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in record.getMessage()

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(passes)
    try:
        yield
    finally:
        logger.removeFilter(passes)


def _belongs_to_layers(hf: PreTrainedModel, key: str) -> bool:
    """Whether a tensor is in one of the model's modules with weights, layers, or a further one.

    Heads for several tokens at once may be counted on after the layers (DeepSeek-V3).
    """
    if _BUFFERS.search(key):
        return False
    prefix = hf.base_model_prefix
    names = (key, f"{prefix}.{key}", key.removeprefix(f"{prefix}."))
    return any(_in_layers(hf, name) or _in_weights(hf, name) for name in names)


def _in_layers(hf: PreTrainedModel, key: str) -> bool:
    extra = getattr(hf.config.get_text_config(), "num_nextn_predict_layers", None) or 0
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


def some(keys: Collection[str] | Sequence[str]) -> str:
    """The first names of tensors, and how many more there are."""
    shown = ", ".join(one_line(key, 60) for key in list(keys)[:_SHOWN])
    further = len(keys) - _SHOWN
    return f"{shown} and {further:,} more" if further > 0 else shown
