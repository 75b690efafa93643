"""Facts about a family that stand in the text part of a model's configuration.

transformers' families name the same fact differently. Nothing here imports transformers, since
options are read without it.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SWITCHES = ("enable_thinking", "thinking")
"""Variables that switch thinking on and off in chat templates: one used by Qwen3, SmolLM3 and
GLM-4.5, and one used by DeepSeek-V3.1 and Granite."""

READING_TOKENS = ("embed_tokens_per_layer", "ngram_embedding", "encoder_hash_tok_embedding")
"""Names of modules that read tokens for later layers: of Gemma 3n and 4, Qwen 4, and BLT."""

_WITHOUT_ATTENTION = ("linear_attention", "conv", "moe", "mlp")
"""transformers' names in `layer_types` for layers that have no attention weights."""


def residual_scale(config: "PreTrainedConfig") -> float:
    """The factor that scales the outputs of attention and MLP when they are added to the stream."""
    if hasattr(config, "scale_depth"):  # MiniCPM3
        return float(config.scale_depth / math.sqrt(config.num_hidden_layers))
    return float(getattr(config, "residual_multiplier", 1.0))  # Granite


def logit_scale(config: "PreTrainedConfig") -> float:
    """The factor that scales logits before any soft cap; 1 for most models."""
    if hasattr(config, "logits_scaling"):
        multiplies = config.model_type.startswith("hyperclovax")
        # Granite and MiniCPM3 divide by this factor.
        return float(config.logits_scaling if multiplies else 1 / config.logits_scaling)
    if hasattr(config, "lm_head_multiplier"):  # Falcon-H1
        return float(config.lm_head_multiplier)
    return float(getattr(config, "logit_scale", None) or 1.0)  # Cohere


def logit_soft_cap(config: "PreTrainedConfig") -> float | None:
    """Soft cap c, which turns logits x into c tanh(x / c) in Gemma 2; None without a cap."""
    fallback = getattr(config, "logits_soft_cap", None)  # RecurrentGemma
    cap: float | None = getattr(config, "final_logit_softcapping", fallback)
    return cap


READING_PADDING = ("git", "blt", "paligemma")
"""Types for which what a batch or cache holds beside a prompt changes it: all among those that
transformers lists (docs/models.md)."""

GENERATING_OTHERWISE = ("moshi", "paligemma", "prophetnet", "rwkv", "xlm")
"""Types for which transformers' generate writes other tokens than plain passes give, since its
caches of them are wrong: all among those that were tried (docs/models.md)."""

MASKING_THEMSELVES = ("paligemma",)
"""Types whose attention depends on a mask of their own, which is not read."""


def has_several_streams(config: "PreTrainedConfig") -> bool:
    """Whether layers pass on several residual streams (AltUp, Gemma 3n)."""
    return getattr(config, "altup_num_inputs", 1) > 1


def keeps_indexer_keys(config: "PreTrainedConfig") -> bool:
    """Whether layers keep the keys of an indexer beside keys and values (DeepSeek-V3.2)."""
    return hasattr(config, "index_topk")


def drops_tokens(config: "PreTrainedConfig") -> bool:
    """Whether late layers read only the tokens whose logits are kept (Gemma 4)."""
    return bool(getattr(config, "num_kv_shared_layers", 0))


def skips_layers(config: "PreTrainedConfig") -> bool:
    """Whether some layers run, and keep keys and values, only for images (Llama 3.2 Vision)."""
    return bool(getattr(config, "cross_attention_layers", None))


def keeps_states(config: "PreTrainedConfig") -> bool:
    """Whether some layers are listed as other than attention, such as convolutions (LFM2)."""
    return any("attention" not in kind for kind in _layer_types(config))


def attention_layers(config: "PreTrainedConfig") -> tuple[int, ...]:
    """The layers that have attention, if others have none; otherwise empty."""
    kinds = _layer_types(config)
    layers = tuple(i for i, kind in enumerate(kinds) if kind not in _WITHOUT_ATTENTION)
    return layers if len(layers) < len(kinds) else ()


def context_length(config: "PreTrainedConfig") -> int | None:
    """Number of positions; None if not in the configuration."""
    # MPT's attention uses another name for this length.
    length: int | None = getattr(
        config, "max_position_embeddings", getattr(config, "max_seq_len", None)
    )
    return length


def short_length(config: "PreTrainedConfig") -> int | None:
    """Largest number of tokens with the rotary frequencies of short prompts; None if unlimited.

    Long RoPE (Phi-3 128k) rotates every token of a longer pass with different frequencies, so one
    pass must not mix prompts below and above this length, and a longer prompt cannot be read in
    parts. Dynamic NTK scaling sets no such limit, because it changes the frequencies only for
    prompts longer than the model accepts.
    """
    parameters: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    by_layer_type = [value for value in parameters.values() if isinstance(value, dict)]
    lengths = [
        part["original_max_position_embeddings"]
        for part in (parameters, *by_layer_type)
        if part.get("rope_type") == "longrope"
    ]
    return min(lengths, default=None)


def heads_after_layers(config: "PreTrainedConfig") -> int:
    """Number of heads for several tokens at once, numbered after the layers (DeepSeek-V3)."""
    return getattr(config, "num_nextn_predict_layers", None) or 0


def _layer_types(config: "PreTrainedConfig") -> list[str]:
    return getattr(config, "layer_types", None) or []
