"""A small random model of every model type with a causal head, and of every wrapper with text.

Nothing is downloaded: each model is made from its own configuration class. `python -m tests.zoo`
measures them; `build("llama").hf` is one, and `interp.Model("llama", built.hf, tokenizer())` what
the toolkit takes.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as WRAPPERS,
)

from tests.zoo.exceptions import NO_TEXT, PARTS, SETTINGS
from tests.zoo.sizes import small

WITH_IMAGES = ":images"
"""Ending of the names of wrappers whose model type also has a class for text alone."""

Kind = Literal["text", "wrapper", "decoder part", "not text"]
"""A decoder of text; one that also reads images or sound; a part of another model, or an encoder
that can be run as a decoder; a model that reads no text, or not text alone."""

WORDS = ("<pad>", "<s>", "</s>", "<unk>", "Yes", "No", *(f"w{number}" for number in range(58)))
"""The vocabulary: a token is a word."""


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer that splits at spaces and adds nothing."""
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast: Any = PreTrainedTokenizerFast  # transformers does not annotate it
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), WORDS, strict=False))
    found: PreTrainedTokenizerFast = fast(tokenizer_object=made, **names)
    return found


@dataclass(frozen=True, slots=True)
class Built:
    """A model of the zoo."""

    name: str
    """Its model type, with `WITH_IMAGES` where that has two classes."""
    kind: Kind
    hf: PreTrainedModel


def types() -> list[str]:
    """The names of all members: types of text first, then wrappers that are not among them."""
    wrappers = [
        name if name not in CAUSAL else f"{name}{WITH_IMAGES}"
        for name, own in WRAPPERS.items()
        if CAUSAL.get(name) != own
    ]
    return [*CAUSAL, *wrappers]


def kind_of(name: str) -> Kind:
    """What a member is; the reasons are in `exceptions.PARTS` and `exceptions.NO_TEXT`."""
    if name in NO_TEXT:
        return "not text"
    if name in PARTS:
        return "decoder part"
    parts = {"text_config", "vision_config", "audio_config"}
    return "wrapper" if parts & set(_class_of(name).config_class.sub_configs) else "text"


def build(name: str, *, dtype: torch.dtype = torch.float32) -> Built:
    """A random model, always with the same weights, in evaluation mode.

    Raises:
        Exception: transformers cannot make it; any kind of exception of its own.
    """
    kind = kind_of(name)
    config = configuration(name)
    torch.manual_seed(0)
    made: Any = _class_of(name)(config)
    hf: PreTrainedModel = made.eval().to(dtype)
    randomize(hf)
    if dtype == torch.float64 and "grouped_mm" in hf.get_experts_implementation().values():
        hf.set_experts_implementation("eager")  # PyTorch's grouped product is for float32 and less
    return Built(name, kind, hf)


def configuration(name: str) -> PreTrainedConfig:
    """The small configuration of a member, or of its part that its class takes."""
    ids = tokenizer()
    sizes = (
        *("vocab_size", "vocab_size_per_layer_input", "decoder_vocab_size"),
        *("unpadded_vocab_size", "base_vocab_size"),
    )
    special = ("bos_token_id", "eos_token_id", "pad_token_id")
    known = dict.fromkeys(sizes, len(ids)) | {name: getattr(ids, name) for name in special}
    config = small(CONFIG_MAPPING[name.removesuffix(WITH_IMAGES)], {}, known)
    if name == "gemma3n":  # its own vision part needs the package timm, and its class no other
        other = SETTINGS["fast_vlm"]["vision_config"]
        made = small(CONFIG_MAPPING[other["model_type"]], {**other, "vocab_offset": 56}, {})
        config.__dict__["vision_config"] = made
    taken: type[PreTrainedConfig] = _class_of(name).config_class
    if isinstance(config, taken):
        return config
    for part in type(config).sub_configs:
        if isinstance(own := getattr(config, part), taken):
            return own
    return config


def _class_of(name: str) -> Any:
    return getattr(transformers, CAUSAL.get(name) or WRAPPERS[name.removesuffix(WITH_IMAGES)])


@torch.no_grad()
def randomize(hf: PreTrainedModel) -> None:
    """Draw weights with which all parts of a layer matter, in place.

    Matrices get entries of variance 2/n for n inputs, so that attention and routers are far from
    uniform. Norms, biases and other vectors are moved from where they are at first, often 0 or 1,
    with which an error would not be seen.
    """
    drawn = torch.Generator().manual_seed(0)
    kinds = {id(p): module for module in hf.modules() for p in module.parameters(recurse=False)}
    for parameter in hf.parameters():
        if not parameter.is_floating_point():
            continue
        noise = torch.randn(parameter.shape, generator=drawn).to(parameter)
        spread = float(parameter.std()) if parameter.numel() > 1 else 0.0
        centred = abs(float(parameter.mean())) <= 0.5 * spread + 1e-9
        if parameter.dim() < 2 or not centred:
            parameter.add_(0.2 * noise)
            continue
        is_conv = isinstance(kinds[id(parameter)], nn.Conv1d | nn.Conv2d | nn.Conv3d)
        inputs = math.prod(parameter.shape[1:]) if is_conv else min(parameter.shape[-2:])
        if isinstance(kinds[id(parameter)], nn.Embedding | nn.Linear):
            inputs = parameter.shape[-1]
        parameter.copy_(noise * math.sqrt(2 / max(inputs, 1)))
