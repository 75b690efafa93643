"""Small sizes for the fields of any configuration of transformers, by the names of the fields."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import CONFIG_MAPPING, PreTrainedConfig

from tests.zoo.exceptions import SETTINGS

WIDTH, HEADS, HEAD, EXPERTS = 32, 4, 8, 4
"""Width of the residual stream, heads and their width, and experts of every small model."""

LONGEST = 512
"""The number of positions, where positions are learnt or computed in advance."""

_SIZES: dict[str, int] = {
    r"(text_|vision_|encoder_|decoder_|attention_|out_|output_|global_|embedding_|projector_|"
    r"projection_|aligner_|patch_embed_|image_text_|post_conv_\w+_)?hidden_(size|dim)": WIDTH,
    r"hidden_size_global|d_model|n_embd|embed_dim|emb_dim|embedding_(dim|size)": WIDTH,
    r"(word_embed_proj|projection|projector_output|projector_input|output|lru|backbone_hidden)_"
    r"(dim|width|size)|lru_width|(in|out)put_embedding_size|image_token_embed_dim": WIDTH,
    r"(low_res_|high_res_)?projector_hidden_size|vision_output_dim|pooler_output_size": WIDTH,
    r"(ple|pronunciation|shape)_embed_dim|output_proj_dims|model_dim|mm_embed_dim": WIDTH,
    # Twice the width, so that a patch of one is not taken for a patch of the other.
    r"(moe_|shared_|expert_|dense_|projection_|alignment_|shared_expert_|moe_shared_expert_)?"
    r"(intermediate|ffn_hidden|hidden|feed_forward)_size(_mlp)?": 2 * WIDTH,
    r"(en|de)coder_ffn_dim|ffn_dim|dim_ff|dff|d_ff|n_inner|mlp_dim|d_inner|share_expert_dim": 2
    * WIDTH,
    r"(num_|encoder_|decoder_|num_encoder_|num_decoder_|swa_|index_|linear_|n_|attention_|mamba_|"
    r"num_linear_|linear_num_value_|conf_num_|resampler_|resampler_n_|num_sliding_|num_global_|"
    r"linear_num_|num_mamba_|mamba_num_|mamba_n_|num_swa_)?(attention_)?heads?": HEADS,
    r"linear_num_value_heads": HEADS,
    r"linear_num_key_heads": HEADS // 2,
    r"qk_head_dim": 2 * HEAD,
    r"kv_channels|d_kv|dim_head|d_head|(\w+_)?(head_dim|dim_head|head_size|headdim|d_head)": HEAD,
    r"(q|kv|o)_lora_rank|laurel_rank|gated_norm_rank|adapter_rank|hc_lowrank": 2 * HEAD,
    r"(\w+_)?(dt|time_step)_rank": HEAD,
    r"rotary_dim": HEAD // 2,
    r"hidden_size_per_layer_input|d_rel|router_hidden_size": HEAD,
    r"(moe_)?(num_|n_routed_|num_local_|num_routed_|moe_num_)(local_|routed_)?experts": EXPERTS,
    r"(num_)?experts_per_tok(en)?|num_experts_per_tok(en)?|moe_top_?k|moe_k|top_k_experts": 2,
    r"n_group|num_expert_group|topk_group|n_shared_experts|(moe_)?num_shared_experts": 1,
    r"zero_expert_num": 2,
    r"first_k_dense_replace|num_dense_layers|moe_layer_start_index|decoder_sparse_step": 1,
    r"(mamba_|ssm_)?(d_state|state_size)": 4,
    r"(mamba_)?(n_?groups)": 1,
    r"(mamba_)?chunk_size": 8,
    r"mamba_d_ssm": WIDTH,
    r"hc_mult|hc_count|altup_num_inputs": 2,
    r"index_topk": 512,
    r"max_position_embeddings|n_positions|n_ctx|max_seq_len|model_max_length": LONGEST,
    r"context_length": LONGEST,
    r"max_(source|target)_positions|rel_extent|max_2d_position_embeddings": LONGEST,
    r"(sliding_window|attention_window|attention_chunk|window)(_size)?|local_attention": 8,
    r"original_max_position_embeddings": LONGEST,
    r"image_size|img_size|crop_size|resolution|max_image_size": 56,
    r"image_seq_length|mm_tokens_per_image|num_image_tokens|image_seq_len": 4,
    r"type_vocab_size": 2,
    r"ngram_vocab_size_base|encoder_hash_byte_group_vocab": 97,
    r"(pronunciation|shape)_vocab_size": 97,
    r"codebook_size|num_embeddings|audio_vocab_size": 32,
    r"(base|num|latent)_(channels|filters)": 32,
}
"""Patterns of names, and the size of the fields with these names."""

_FIXED = {
    "mlp_only_layers": [0],  # one layer with experts, and one without
    "attention_multiplier": HEAD**-0.5,  # the default, 1, leaves each token one that it sees
}
"""Other values of fields with these names."""

_FACTORS = re.compile(r"(?!block|depthwise)\w+_multipliers?|\w+_(alpha|beta)_factor|logits_scaling")
_FACTOR = 0.6
"""Factors of 1, the default, would hide that one is left out, so they get another value."""

_LAYERS = re.compile(
    r"(num_|n_|encoder_|decoder_|num_encoder_|num_decoder_|conf_num_|num_global_)?"
    r"(hidden_)?(layers|layer|blocks)|depth|resampler_depth|num_layers_per_stack"
    r"|aligner_num_add_layers"
)

_MEDIA = re.compile(
    r"\w*(image|img|video|vision|visual|audio|frame|boi|eoi|boa|eoa|im_)\w*_(id|index)"
)
"""Ids of tokens that stand for images and sounds; they get the last ids of the vocabulary."""

_KINDS = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types", "indexer_types")
"""Fields that list the kind of each layer."""

LAYERS = 2
"""Number of layers, unless a model has more kinds of them."""


def kinds_in(listed: Sequence[Any]) -> list[Any]:
    """The different kinds of layers in the order of their last places.

    The last layer thus has the kind that the configuration class gives it.
    """
    last = {kind: place for place, kind in enumerate(listed)}
    return sorted(last, key=last.__getitem__)


def small(
    kind: type[PreTrainedConfig], given: Mapping[str, Any], known: Mapping[str, Any]
) -> PreTrainedConfig:
    """A small configuration of a class: sizes by `_SIZES`, one layer of each kind, at least two.

    Args:
        kind: the class of the configuration.
        given: fields set by hand; "text_config" and the like hold a dictionary of their own, with
            its "model_type" if that is not the class's own.
        known: values of every configuration's fields of these names, such as the vocabulary's size.
    """
    by_hand: dict[str, Any] = {**SETTINGS.get(kind.model_type, {}), **given}
    fields = {own.name: own for own in dataclasses.fields(kind) if own.name not in kind.sub_configs}
    default = _default(kind)
    values = {name: _value(default, field, name) for name, field in fields.items()}
    count = _layer_count(default, by_hand)
    chosen = {name: _small(name, value, values, count) for name, value in values.items()}
    chosen |= {name: value for name, value in known.items() if name in fields}
    if "vocab_size" in known:
        media = [n for n in fields if _MEDIA.fullmatch(n) and isinstance(values[n], int)]
        chosen |= {name: known["vocab_size"] - 1 - place for place, name in enumerate(media)}
    for name in kind.sub_configs:
        chosen[name] = _small_part(kind, name, default, by_hand.pop(name, {}), known)
    set_ones = {name: value for name, value in chosen.items() if value is not None}
    return kind(**{**set_ones, **by_hand})


def _small(name: str, value: Any, values: Mapping[str, Any], count: int) -> Any:
    """The small value of a field; None for what stays as it is."""
    if name in _KINDS and isinstance(value, list | tuple) and value:
        return _spread(kinds_in(value), count)
    if name in _FIXED or _FACTORS.fullmatch(name):
        return _FIXED.get(name, _factor(value))
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    if _LAYERS.fullmatch(name):
        return min(value, count)
    if name in ("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads"):
        return HEADS if value == values.get("num_attention_heads") else min(value, HEADS // 2)
    size = size_of(name)
    return None if size is None or value <= 2 else min(size, value)


def _factor(value: Any) -> Any:
    """Another value of a factor, or of a list of them, that is 1; None for one that is not."""
    if isinstance(value, list):
        return [_FACTOR] * len(value)
    return _FACTOR if value == 1 else None


def _small_part(
    kind: type[PreTrainedConfig],
    name: str,
    default: PreTrainedConfig | None,
    given: Mapping[str, Any],
    known: Mapping[str, Any],
) -> PreTrainedConfig | None:
    """A small configuration of a part; None if the part is optional and left out."""
    made = getattr(default, name, None)
    if made is None and not given:
        return None
    own = dict(given)
    if "model_type" in own:
        return small(CONFIG_MAPPING[own.pop("model_type")], own, known)
    return small(kind.sub_configs[name] if made is None else type(made), own, known)


def size_of(name: str) -> int | None:
    """The small size of a field, or None for fields that are no sizes."""
    return next((size for pattern, size in _SIZES.items() if re.fullmatch(pattern, name)), None)


def _default(kind: type[PreTrainedConfig]) -> PreTrainedConfig | None:
    """The configuration that the class makes by itself; None if it refuses its own values."""
    try:
        return kind()
    except Exception:  # any of transformers' own checks
        return None


def _value(default: PreTrainedConfig | None, field: Any, name: str) -> Any:
    if default is not None:
        try:
            return getattr(default, name, None)
        except Exception:  # a value that differs between layers; the class's own is as good
            pass
    if field is None:
        return None
    return None if field.default is dataclasses.MISSING else field.default


def _layer_count(default: PreTrainedConfig | None, given: Mapping[str, Any]) -> int:
    """As many layers as are given, or as the longest list of kinds needs."""
    for name, value in given.items():
        if _LAYERS.fullmatch(name) and isinstance(value, int):
            return value
    lists = [getattr(default, name, None) for name in _KINDS if name not in given]
    counts = [len(kinds_in(listed)) for listed in lists if isinstance(listed, list | tuple)]
    own = [len(given[name]) for name in _KINDS if isinstance(given.get(name), list | tuple)]
    return max([LAYERS, *counts, *own])


def _spread(kinds: Sequence[Any], count: int) -> list[Any]:
    """The kinds, with the first repeated so that there are as many as layers."""
    return [*[kinds[0]] * (count - len(kinds)), *kinds]
