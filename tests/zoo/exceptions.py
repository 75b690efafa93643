"""What the names of fields do not tell about some model types, each with its reason."""

from typing import Any

_SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
"""Rotary positions of three kinds (time, height, width) that share the 4 pairs of a small head."""

_THREE_POSITIONS = (
    *("cosmos3_edge_text", "paddleocr_vl_text", "qwen2_vl_text", "qwen2_5_vl_text"),
    "qwen2_5_omni_text",
)
_HALF = {**_SECTIONS, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 0]}
_OF_SECTIONS, _OF_HALF = {"rope_parameters": _SECTIONS}, {"rope_parameters": _HALF}

_MAMBA2 = {"mamba_n_heads": 4, "mamba_d_head": 16}
"""Heads times their width must be `mamba_expand` times the width of the stream."""

_OTHER_VISION = {
    "model_type": "siglip_vision_model",
    "vocab_size": 8,
    "vocab_offset": 56,
    "rms_norm_eps": 1e-6,
}

_DECODER = {"is_decoder": True}
"""An encoder whose tokens see only earlier ones."""

_ENCODERS = (
    "bert", "big_bird", "camembert", "data2vec-text", "electra", "ernie", "megatron-bert",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta",
    "xlm-roberta-xl", "bert-generation",
)  # fmt: skip

_BOTH = {"layer_types": ["sliding_attention", "full_attention"]}
_TWICE = {"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2}
_DENSE_FIRST = {"mlp_layer_types": ["dense", "sparse"]}
_EXPERTS = {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32}
_SHARED_ATTENTION = {
    "num_hidden_layers": 4,
    "layers_block_type": ["linear_attention", "hybrid"] * 2,
    "attention_hidden_size": 64,
    "attention_head_dim": 16,
}
"""The block of attention is shared, so two layers must have it."""

SETTINGS: dict[str, dict[str, Any]] = {
    "bamba": {**_MAMBA2, "attn_layer_indices": [1]},  # every layer a Mamba by default
    "granitemoehybrid": {**_MAMBA2, "layer_types": ["linear_attention", "full_attention"]},
    "mamba2": {"num_heads": 4, "head_dim": 16},
    # Rotary positions belong to the kinds of layers; by default there are none.
    "cohere_compass_text": {
        **_BOTH,
        "rope_parameters": {"sliding_attention": _SECTIONS, "full_attention": None},
    },
    # The class of its attention's configuration has lost the field that its model reads.
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "deepseek_v2": {**_DENSE_FIRST, "num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "dots3_note_text": {
        "layer_types": ["sliding_attention", "indexed_attention"],
        **_DENSE_FIRST,
        **dict.fromkeys(("swa_num_attention_heads", "swa_num_key_value_heads"), 4),
        **dict.fromkeys(("swa_q_lora_rank", "swa_kv_lora_rank", "swa_head_dim", "head_dim"), 16),
        **dict.fromkeys(("swa_qk_nope_head_dim", "swa_v_head_dim"), 8),
        "shared_experts_intermediate_size": 32,
    },
    "dots3_note_vision_encoder": {
        **_DENSE_FIRST,
        "adapter_in_dim": 32,
        "adapter_out_dim": 32,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
        "per_layer_config": {},
    },
    "dots3_note_audio_encoder": {"adapter_input_size": 32, "adapter_out_dim": 32},
    # Its last layers reuse the keys and values of earlier ones, one of each kind.
    "gemma3n_text": {
        **_TWICE,
        "num_kv_shared_layers": 2,
        "intermediate_size": [64] * 4,
        "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
    },
    "gemma4_text": {
        **_TWICE,
        **_EXPERTS,
        "num_kv_shared_layers": 2,
        "global_head_dim": 16,
        "enable_moe_block": True,
    },
    "gemma4_unified_text": {**_BOTH, "global_head_dim": 16},
    "diffusion_gemma_text": {**_EXPERTS, "global_head_dim": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8, "num_experts": 4, "moe_topk": 2},
    "hunyuan_vl_text": {"head_dim": 8, "rope_parameters": _SECTIONS},
    "ministral": {"head_dim": 8},
    "nemotron": {"num_key_value_heads": 2},
    # A layer with the indexer of its own must come before one that shares it.
    "hy_v4": {"indexer_types": ["full", "shared"]},
    "lfm2_moe": {
        "num_hidden_layers": 3,
        "layer_types": ["conv", "full_attention", "conv"],
        "num_dense_layers": 1,
    },
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    # Its configuration asks for shape, not for kinds, of the layers.
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
    },
    # Kinds of layers that their configurations leave out unless they are named.
    "minimax_m3_vl_text": {"layer_types": ["full_attention", "minimax_m3_sparse"], **_DENSE_FIRST},
    "laguna": {**_BOTH, "sliding_window": 8},
    "mellum": {**_BOTH, "sliding_window": 8},
    **dict.fromkeys(("inkling_text", "cohere2_moe"), _DENSE_FIRST),
    "qwen2": {**_BOTH, "use_sliding_window": True, "sliding_window": 8},
    # Layers that read images do not run without one.
    "mllama_text_model": {"num_hidden_layers": 3, "cross_attention_layers": [1]},
    "smollm3": {"no_rope_layer_interval": 2},
    "llama4_text": {"moe_layers": [1], "no_rope_layer_interval": 2},
    "zamba": _SHARED_ATTENTION,
    "zamba2": {**_SHARED_ATTENTION, "mamba_headdim": 16, "n_mamba_heads": 4},
    "qwen4_exp_text": {
        "ple_layer_ids": [1],
        "heads_per_ngram": 2,
        "make_ngram_vocab_size_divisible_by": 8,
        "split_ngram_parts": 1,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 64,
        "indexer_compress_ratio": 4,
    },
    "reformer": {
        "is_decoder": True,
        "attn_layers": ["local", "lsh"],
        "axial_pos_embds_dim": [16, 16],
        "axial_pos_shape": [16, 32],
        "attention_head_size": 8,
        "hash_seed": 0,  # otherwise each pass draws its own hashes
    },
    "xmod": {"default_language": "en_XX", "is_decoder": True},
    **dict.fromkeys(_ENCODERS, _DECODER),
    "chameleon": {"vocabulary_map": {"<image>": 63}},
    "emu3": {"vocabulary_map": {"<image>": 63}},
    "deepseek_ocr2_text": {**_DENSE_FIRST, "num_experts_per_tok": 2},
    "ernie4_5_vl_moe_text": {
        "rope_parameters": {**_SECTIONS, "mrope_section": [1, 1, 2]},
        "moe_intermediate_size": [32, 32],
    },
    **dict.fromkeys(("glm4v_text", "glm_ocr_text", "glm4v_moe_text"), _OF_HALF),
    **dict.fromkeys(_THREE_POSITIONS, _OF_SECTIONS),
    "granite4_vision": {
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 64},
        "downsample_rate": "2/4",
        "deepstack_layer_map": [[-1, 0]],
        "spatial_target_layers": [0, 0, 1, 1],
    },
    "molmo2_adapter": {"vision_feature_layer": [1, 0]},
    # Their images are read by models of the package timm, which is not needed for text.
    "fast_vlm": {"vision_config": _OTHER_VISION},
    "perception_lm": {"vision_config": {**_OTHER_VISION, "model_args": {"embed_dim": 32}}},
    "muse_spark_audio": {
        "num_hidden_layers": 1,
        "patch_sizes": [4],
        "hidden_sizes": [32],
        "depths": [1],
    },
    "radio": {"video_temporal_patch_size": 2},
    "step3p5": {**_BOTH, **_DENSE_FIRST, "sliding_window": 8},
}
"""Settings by the type of the configuration, also where it is a part of another."""

_WITH_AN_ENCODER = (
    "bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "marian", "mbart", "mvp",
    "pegasus", "plbart", "prophetnet", "trocr", "whisper",
)  # fmt: skip
_OF_AN_ENCODER = "the decoder of an encoder-decoder model; alone, it writes without its encoder"
_ENCODER = "an encoder that can be run as a decoder"
_SOUND = "writes tokens of sound, several at each step"
_ASSISTANT = "drafts for a larger model, whose keys and values it reads"

PARTS: dict[str, str] = {
    **dict.fromkeys(_ENCODERS, _ENCODER),
    "xmod": _ENCODER,
    **dict.fromkeys(_WITH_AN_ENCODER, _OF_AN_ENCODER),
    "xlm": "a model of masked words, whose tokens see later ones",
    "xlnet": "a model of permuted words, whose tokens see later ones",
}
"""Types with a causal head that are no decoders of text by themselves; all can be built."""

_OF_IMAGES = (
    "blip", "blip-2", "idefics", "instructblip", "instructblipvideo", "kosmos-2", "kosmos-2.5",
    "pix2struct", "pp_formulanet", "vision-encoder-decoder",
)  # fmt: skip
_NEEDS_IMAGE = "its forward pass requires an image"
_TEXT_TO_TEXT = "an encoder-decoder model"

NO_TEXT: dict[str, str] = {
    "musicgen": _SOUND,
    "musicgen_melody": _SOUND,
    "gemma4_assistant": _ASSISTANT,
    "gemma4_unified_assistant": _ASSISTANT,
    **dict.fromkeys(_OF_IMAGES, _NEEDS_IMAGE),
    "florence2": _TEXT_TO_TEXT,
    "t5gemma2": _TEXT_TO_TEXT,
    "udop": _TEXT_TO_TEXT,
    "pi0": "writes actions of a robot from its state",
    "diffusion_gemma": "fills blocks of text by diffusion; tokens of a block see later ones",
    "evolla": "requires a protein",
}
"""Members that do not continue a text that is given alone, and why."""
