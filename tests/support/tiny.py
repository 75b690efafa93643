"""Random models of every supported architecture, small enough to run in milliseconds."""

from functools import cache
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedTokenizerFast

from interp.models.model import Model
from tests.support.tokenizers import byte_level

_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": _SHAPE,
    "mistral": {**_SHAPE, "sliding_window": 96},
    "phi3": _SHAPE,
    "gemma2": {**_SHAPE, "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 48},
    "qwen2": _SHAPE,
    "qwen3": {**_SHAPE, "head_dim": 8},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256},
    "gpt_neox": {k: v for k, v in _SHAPE.items() if k != "num_key_value_heads"},
}
"""Settings of a small model, by model type."""


@cache
def tiny_model(kind: str, *, dtype: torch.dtype = torch.float32, attn: str | None = None) -> Model:
    return make_tiny(kind, byte_level(), dtype=dtype, attn=attn)


def make_tiny(
    kind: str,
    tokenizer: PreTrainedTokenizerFast,
    *,
    dtype: torch.dtype = torch.float32,
    attn: str | None = None,
    **changes: object,
) -> Model:
    config = AutoConfig.for_model(kind, **ids_of(tokenizer), **{**CONFIGS[kind], **changes})
    return random_model(config, tokenizer, dtype=dtype, attn=attn)


def ids_of(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    """The settings of a configuration that depend on the tokenizer."""
    return {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def random_model(
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerFast,
    *,
    auto: type = AutoModelForCausalLM,
    dtype: torch.dtype = torch.float32,
    attn: str | None = None,
) -> Model:
    """A model whose random weights are so large that attention and logits are not uniform."""
    torch.manual_seed(0)
    hf = auto.from_config(config, attn_implementation=attn).eval()
    if dtype != torch.float32:  # which would cut complex numbers
        hf.to(dtype)
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return Model(f"tiny {config.model_type}", hf, tokenizer)


def save(model, folder):
    """Save a model and its tokenizer in a folder, which is returned."""
    model.hf.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder
