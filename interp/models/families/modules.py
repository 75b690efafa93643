"""Names of the modules in each family of models.

Another package adds a family with an entry point in `interp.architectures`: its name is the model
type in config.json, and it refers to an `Architecture`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from transformers import PreTrainedConfig

from interp.models.families import settings


@dataclass(frozen=True, slots=True)
class Architecture:
    """Module paths in a causal language model, or in an encoder that pools its first token.

    The paths `layers` and `final_norm` start at the model's root. All other paths start at a layer
    unless stated otherwise.
    """

    layers: str
    """The list of layers."""
    attention: str
    mlp: str
    final_norm: str | None
    """The norm after the last layer; None if the head reads the last layer's output directly."""
    attention_out: str
    """The module of a layer whose output is the attention's contribution to the residual stream."""
    mlp_norm: str | None
    """The module of a layer that reads the residual stream for the MLP: the MLP's norm or, without
    a norm, the MLP itself. None if the layer normalizes the stream itself, which is then not a sum
    of contributions."""
    mlp_out: str
    """The module of a layer whose output is the MLP's contribution to the residual stream."""
    heads_out: str
    """The attention's output projection, which reads the outputs of all heads."""
    qkv: tuple[str, str, str]
    """The attention's linear modules that compute queries, keys and values."""
    layout: Literal["own", "stacked", "interleaved"] = "own"
    """How queries, keys and values are arranged in the output of these modules: "own" if they come
    from separate modules; "stacked" if one module returns the queries, then the keys, then the
    values of all heads; "interleaved" if it returns the query, key and value of each head in turn.
    """
    causal: bool = True
    """Whether a token attends only to itself and earlier tokens."""
    gates: tuple[str, ...] = ()
    """The modules of a gated MLP that compute its gate and the values that the gate multiplies;
    empty if the MLP has no gate."""
    parallel: bool = False
    """Whether attention and MLP read the same residual stream, so that none is between them."""
    residual_scale: Callable[[PreTrainedConfig], float] = settings.residual_scale
    """From the text configuration, the factor that scales the outputs of attention and MLP when
    they are added to the residual stream."""
    logit_scale: Callable[[PreTrainedConfig], float] = settings.logit_scale
    """From the text configuration, the factor that scales logits before any soft cap."""
    logit_soft_cap: Callable[[PreTrainedConfig], float | None] = settings.logit_soft_cap
    """From the text configuration, the soft cap c, which turns logits x into c tanh(x / c)."""


LLAMA_LIKE = Architecture(
    layers="model.layers",
    attention="self_attn",
    mlp="mlp",
    final_norm="model.norm",
    attention_out="self_attn",
    mlp_norm="post_attention_layernorm",
    mlp_out="mlp",
    heads_out="o_proj",
    qkv=("q_proj", "k_proj", "v_proj"),
    gates=("gate_proj", "up_proj"),
)
"""The most common layout, which is assumed for model types that are not listed."""

_NORMS_AROUND = replace(
    LLAMA_LIKE,
    attention_out="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_out="post_feedforward_layernorm",
)
_NORMS_AFTER = replace(_NORMS_AROUND, mlp_norm="mlp")

_GPT2 = Architecture(
    layers="transformer.h",
    attention="attn",
    mlp="mlp",
    final_norm="transformer.ln_f",
    attention_out="attn",
    mlp_norm="ln_2",
    mlp_out="mlp",
    heads_out="c_proj",
    qkv=("c_attn",) * 3,
    layout="stacked",
)
_FUSED = ("query_key_value",) * 3
_DENSE = replace(LLAMA_LIKE, final_norm="model.final_layernorm", heads_out="dense", gates=())

ARCHITECTURES = {
    "llama": LLAMA_LIKE,
    "mistral": LLAMA_LIKE,
    "phi3": replace(LLAMA_LIKE, qkv=("qkv_proj",) * 3, layout="stacked", gates=("gate_up_proj",)),
    "gemma2": _NORMS_AROUND,
    "gemma3_text": _NORMS_AROUND,
    "olmo2": _NORMS_AFTER,
    "olmo3": _NORMS_AFTER,
    "exaone4": _NORMS_AFTER,
    "glm4": replace(
        LLAMA_LIKE,
        attention_out="post_self_attn_layernorm",
        mlp_out="post_mlp_layernorm",
        gates=("gate_up_proj",),
    ),
    "qwen2": LLAMA_LIKE,
    "qwen3": LLAMA_LIKE,
    "gpt2": _GPT2,
    "gpt_neo": replace(
        _GPT2,
        attention="attn.attention",
        attention_out="attn.attention",
        heads_out="out_proj",
        qkv=LLAMA_LIKE.qkv,
        layout="own",
    ),
    "gptj": replace(
        _GPT2, mlp_norm="mlp", heads_out="out_proj", qkv=LLAMA_LIKE.qkv, layout="own", parallel=True
    ),
    "gpt_neox": replace(
        _GPT2,
        layers="gpt_neox.layers",
        attention="attention",
        final_norm="gpt_neox.final_layer_norm",
        attention_out="attention",
        mlp_norm="post_attention_layernorm",
        heads_out="dense",
        qkv=_FUSED,
        layout="interleaved",
    ),
    "bloom": replace(
        _GPT2,
        attention="self_attention",
        # The attention module and the MLP return the residual stream with their contributions.
        attention_out="self_attention.dense",
        mlp_norm="post_attention_layernorm",
        mlp_out="mlp.dense_4h_to_h",
        heads_out="dense",
        qkv=_FUSED,
        layout="interleaved",
    ),
    "persimmon": replace(_DENSE, qkv=_FUSED, layout="interleaved"),
    "phi": replace(_DENSE, mlp_norm="mlp", parallel=True),
    "xglm": replace(
        LLAMA_LIKE,
        mlp="fc1",  # the first half of the MLP
        final_norm="model.layer_norm",
        mlp_norm="final_layer_norm",
        mlp_out="fc2",
        heads_out="out_proj",
        gates=(),
    ),
}
"""Module paths by `config.model_type`."""

_BERT_LIKE = Architecture(
    layers="bert.encoder.layer",
    attention="attention",
    mlp="intermediate",  # the first half of the MLP, with the activation function
    final_norm=None,
    attention_out="attention.output.dense",
    mlp_norm=None,
    mlp_out="output.dense",
    heads_out="output.dense",
    qkv=("self.query", "self.key", "self.value"),
    causal=False,
)
_ROBERTA_LIKE = replace(_BERT_LIKE, layers="roberta.encoder.layer")

ENCODERS = {
    "bert": _BERT_LIKE,
    "roberta": _ROBERTA_LIKE,
    "xlm-roberta": _ROBERTA_LIKE,
    "camembert": _ROBERTA_LIKE,
    "electra": replace(_BERT_LIKE, layers="electra.encoder.layer"),
    "distilbert": replace(
        _BERT_LIKE,
        layers="distilbert.transformer.layer",
        mlp="ffn",
        attention_out="attention.out_lin",
        mlp_out="ffn",
        heads_out="out_lin",
        qkv=("q_lin", "k_lin", "v_lin"),
    ),
    "modernbert": replace(
        LLAMA_LIKE,
        attention="attn",
        final_norm="model.final_norm",
        attention_out="attn",
        mlp_norm="mlp_norm",
        heads_out="Wo",
        qkv=("Wqkv",) * 3,
        layout="stacked",
        causal=False,
        gates=("Wi",),
    ),
}
"""Module paths in encoders whose classification head reads the first token."""

HEADS_OUT = ("o_proj", "out_proj", "dense")
"""Names of output projections in attention modules of families that are not listed."""

CROSS_ATTENTIONS = ("EncDecAttention", "encoder_attn")
"""Names of the cross-attention module in decoder layers."""
