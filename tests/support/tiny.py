"""Random models of every supported architecture, small enough to run in milliseconds."""

from functools import cache

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

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

CONFIGS = {
    "llama": (LlamaConfig, _SHAPE),
    "mistral": (MistralConfig, {**_SHAPE, "sliding_window": 96}),
    "phi3": (Phi3Config, _SHAPE),
    "gemma2": (
        Gemma2Config,
        {**_SHAPE, "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 48},
    ),
    "qwen2": (Qwen2Config, _SHAPE),
    "qwen3": (Qwen3Config, {**_SHAPE, "head_dim": 8}),
    "gpt2": (GPT2Config, {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),
    "gpt_neox": (
        GPTNeoXConfig,
        {k: v for k, v in _SHAPE.items() if k != "num_key_value_heads"},
    ),
}


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
    config_class, shape = CONFIGS[kind]
    config = config_class(
        vocab_size=len(tokenizer),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **{**shape, **changes},
    )
    torch.manual_seed(0)
    hf = AutoModelForCausalLM.from_config(config, attn_implementation=attn).to(dtype).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            # Larger than the usual initialisation, so that attention and logits are not uniform.
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return Model(f"tiny {kind}", hf, tokenizer)
