"""Random models of architectures other than the packaged ones."""

from functools import cache

import torch
from transformers import AutoConfig

from interp.models.model import Model
from tests.support.tiny import ids_of, random_model
from tests.support.tokenizers import byte_level

_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}
_WITHOUT_GROUPS = {"num_key_value_heads": None}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_LATENT = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
}
_LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [8.0] * 4,
    "original_max_position_embeddings": 80,
    "factor": 8.0,
}

SHAPES = {
    "olmo2": {},
    "olmo3": {"sliding_window": 48},
    "gemma3_text": {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 48},
    "glm4": {"head_dim": 8, "partial_rotary_factor": 0.5},
    "exaone4": {"head_dim": 8, "sliding_window": 48},
    "granite": {
        "residual_multiplier": 3.0,
        "logits_scaling": 0.2,
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.3,
    },
    "cohere": {"logit_scale": 0.25},
    "bloom": _WITHOUT_GROUPS,
    "gptj": {**_WITHOUT_GROUPS, "rotary_dim": 4},
    "gpt_neo": {
        **_WITHOUT_GROUPS,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 48,
    },
    "persimmon": _WITHOUT_GROUPS,
    "phi": {},
    "xglm": {**_WITHOUT_GROUPS, "ffn_dim": 64},
    "nanochat": {"final_logit_softcapping": 2.0},
    "minicpm3": {
        **_LATENT,
        "num_key_value_heads": 4,
        "scale_emb": 3,
        "scale_depth": 1.4,
        "dim_model_base": 16,
    },
    "bitnet": {},
    "diffllama": {},
    "deepseek_v3": {
        **_LATENT,
        "num_key_value_heads": 4,
        "moe_intermediate_size": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
    },
    "gpt_oss": {**_EXPERTS, "head_dim": 8, "sliding_window": 48},
    "phi3": {"rope_parameters": _LONG_ROPE, "original_max_position_embeddings": 80},
}


@cache
def other_model(
    kind: str, *, attn: str | None = None, dtype: torch.dtype = torch.float32, **changes: object
) -> Model:
    """A model of a `config.model_type`, with changes of its shape."""
    tokenizer = byte_level()
    shape = {**_SHAPE, **SHAPES[kind], **changes}
    config = AutoConfig.for_model(kind, **ids_of(tokenizer), **shape)
    model = random_model(config, tokenizer, dtype=dtype, attn=attn)
    with torch.no_grad():
        for name, parameter in model.hf.named_parameters():
            if name.endswith("sinks"):
                parameter.normal_()
            elif parameter.dim() == 1 and "norm" in name:
                # A norm that scales all directions alike would go unnoticed.
                parameter.mul_(torch.linspace(0.5, 1.5, len(parameter)))
    return model
