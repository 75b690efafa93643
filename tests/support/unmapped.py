"""Random models of architectures that are not mapped, and one that also reads images."""

from functools import cache
from typing import Any

from transformers import AutoConfig

from interp.models.model import Model
from tests.support.tiny import ids_of, random_model
from tests.support.tokenizers import byte_level

_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}
_GROUPED = {**_SHAPE, "num_key_value_heads": 2}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}
_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}

UNMAPPED: dict[str, dict[str, Any]] = {
    "opt": {**_SHAPE, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "falcon": _SHAPE,
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 512},
    "gpt_bigcode": _GPT,
    "codegen": {**_GPT, "rotary_dim": 4},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "mamba2": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "state_size": 8,
        "num_heads": 4,
        "head_dim": 16,
        "n_groups": 1,
        "chunk_size": 16,
    },
    "recurrent_gemma": {
        **_SHAPE,
        "num_hidden_layers": 3,
        "num_key_value_heads": 1,
        "lru_width": 32,
        "attention_window_size": 512,
    },
    "lfm2": {**_GROUPED, "layer_types": ["conv", "full_attention"]},
    "jamba": {
        **_GROUPED,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "mamba_d_state": 4,
    },
    "llama4_text": {**_GROUPED, **_EXPERTS, "head_dim": 8, "intermediate_size_mlp": 64},
    "granitemoe": {**_GROUPED, **_EXPERTS},
    "qwen3_next": {
        **_GROUPED,
        "head_dim": 8,
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
}
"""Settings of a small model, by model type."""

IMAGES = {
    "text_config": {
        **_GROUPED,
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "sliding_window": 96,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "vision_config": {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": 28,
        "patch_size": 14,
    },
    "mm_tokens_per_image": 4,
}
"""Settings of a small Gemma-3 that reads images; its text part is mapped."""


@cache
def unmapped_model(kind: str, *, attn: str | None = None) -> Model:
    """A random model of a kind in `UNMAPPED`, or "gemma3"."""
    tokenizer = byte_level()
    if kind == "gemma3":
        last = ("image_token_id", "boi_token_id", "eoi_token_id")
        settings = {name: len(tokenizer) - 1 - index for index, name in enumerate(last)}
        settings |= {**IMAGES, "text_config": {**IMAGES["text_config"], **ids_of(tokenizer)}}
    else:
        settings = {**ids_of(tokenizer), **UNMAPPED[kind]}
    return random_model(AutoConfig.for_model(kind, **settings), tokenizer, attn=attn)
