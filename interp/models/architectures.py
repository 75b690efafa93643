"""Model kinds, and where each architecture keeps its layers: all module names are here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)

from interp.errors import UserError


@dataclass(frozen=True, slots=True)
class Kind:
    """The common properties of all models of one kind."""

    name: str
    auto: Any
    """The transformers class that loads models of this kind."""
    reads_ahead: bool
    """Whether a token attends to later ones, so the model reads a shared beginning of two prompts
    differently in each."""


CAUSAL = Kind("causal language model", AutoModelForCausalLM, reads_ahead=False)
CLASSIFIER = Kind("sequence classifier", AutoModelForSequenceClassification, reads_ahead=True)
TEXT_TO_TEXT = Kind("text-to-text model", AutoModelForSeq2SeqLM, reads_ahead=True)


def kind_of(config: PreTrainedConfig, architectures: Sequence[str]) -> Kind:
    """The kind of a model, by the names of its classes and, failing these, its configuration.

    Models that also read images are called ...ForConditionalGeneration too, and are causal.

    Raises:
        UserError: the model has no head that answers, as in a masked language model.
    """
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        return CLASSIFIER
    if any(name.endswith("ForMaskedLM") for name in architectures):
        raise UserError(
            f"{', '.join(architectures)} fills masks and gives no answers; expected a causal "
            "language model, a sequence classifier or a text-to-text model"
        )
    return TEXT_TO_TEXT if getattr(config, "is_encoder_decoder", False) else CAUSAL


@dataclass(frozen=True, slots=True)
class Projection:
    """The place where the queries, keys or values of all heads leave a linear module."""

    module: str
    """Path within the attention."""
    layout: str = "own"
    """"own": the module gives nothing else; "stacked": queries, then keys, then values of all
    heads; "interleaved": query, key and value of each head together."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Module paths of a stack of layers, from the model's root or from one layer.

    The model is a causal language model, or an encoder that pools its first token.
    """

    layers: str
    """Path of the list of layers."""
    attention: str
    """Path of the attention within a layer."""
    mlp: str
    """Path of the MLP within a layer."""
    final_norm: str | None
    """Path of the norm after the last layer; None if the head reads the layer's output."""
    attention_out: str
    """Path within a layer of the module whose output the attention adds to the residual stream."""
    mlp_norm: str | None
    """Path within a layer of the module that reads the residual stream for the MLP: its norm, or
    the MLP. None if norms act on the stream itself, which is then not a sum."""
    mlp_out: str
    """Path within a layer of the module whose output the MLP adds to the residual stream."""
    heads_out: str
    """Path within the attention of the projection that reads the outputs of all heads."""
    queries: Projection
    keys: Projection
    values: Projection
    causal: bool = True
    """Whether a token attends only to those before it."""
    gates: tuple[str, ...] = ()
    """Paths within a gated MLP of the modules that give its gate and the values that the gate
    multiplies; empty if the MLP has no gate."""


_LLAMA_LIKE = Architecture(
    layers="model.layers",
    attention="self_attn",
    mlp="mlp",
    final_norm="model.norm",
    attention_out="self_attn",
    mlp_norm="post_attention_layernorm",
    mlp_out="mlp",
    heads_out="o_proj",
    queries=Projection("q_proj"),
    keys=Projection("k_proj"),
    values=Projection("v_proj"),
    gates=("gate_proj", "up_proj"),
)

_NORMS_AROUND = replace(
    _LLAMA_LIKE,
    attention_out="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_out="post_feedforward_layernorm",
)
_NORMS_AFTER = replace(_NORMS_AROUND, mlp_norm="mlp")

_QKV = Projection("qkv_proj", "stacked")
_WQKV = Projection("Wqkv", "stacked")
_TOGETHER = ("gate_up_proj",)
_C_ATTN = Projection("c_attn", "stacked")
_QUERY_KEY_VALUE = Projection("query_key_value", "interleaved")

ARCHITECTURES = {
    "llama": _LLAMA_LIKE,
    "mistral": _LLAMA_LIKE,
    "phi3": replace(_LLAMA_LIKE, queries=_QKV, keys=_QKV, values=_QKV, gates=_TOGETHER),
    "gemma2": _NORMS_AROUND,
    "gemma3_text": _NORMS_AROUND,
    "olmo2": _NORMS_AFTER,
    "olmo3": _NORMS_AFTER,
    "exaone4": _NORMS_AFTER,
    "glm4": replace(
        _LLAMA_LIKE,
        attention_out="post_self_attn_layernorm",
        mlp_out="post_mlp_layernorm",
        gates=_TOGETHER,
    ),
    "qwen2": _LLAMA_LIKE,
    "qwen3": _LLAMA_LIKE,
    "gpt2": Architecture(
        layers="transformer.h",
        attention="attn",
        mlp="mlp",
        final_norm="transformer.ln_f",
        attention_out="attn",
        mlp_norm="ln_2",
        mlp_out="mlp",
        heads_out="c_proj",
        queries=_C_ATTN,
        keys=_C_ATTN,
        values=_C_ATTN,
    ),
    "gpt_neox": Architecture(
        layers="gpt_neox.layers",
        attention="attention",
        mlp="mlp",
        final_norm="gpt_neox.final_layer_norm",
        attention_out="attention",
        mlp_norm="post_attention_layernorm",
        mlp_out="mlp",
        heads_out="dense",
        queries=_QUERY_KEY_VALUE,
        keys=_QUERY_KEY_VALUE,
        values=_QUERY_KEY_VALUE,
    ),
}
"""`config.model_type` to its module paths."""

_BERT_LIKE = Architecture(
    layers="bert.encoder.layer",
    attention="attention",
    mlp="intermediate",  # its first half, with the activation function
    final_norm=None,
    attention_out="attention.output.dense",
    mlp_norm=None,
    mlp_out="output.dense",
    heads_out="output.dense",
    queries=Projection("self.query"),
    keys=Projection("self.key"),
    values=Projection("self.value"),
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
        queries=Projection("q_lin"),
        keys=Projection("k_lin"),
        values=Projection("v_lin"),
    ),
    "modernbert": Architecture(
        layers="model.layers",
        attention="attn",
        mlp="mlp",
        final_norm="model.final_norm",
        attention_out="attn",
        mlp_norm="mlp_norm",
        mlp_out="mlp",
        heads_out="Wo",
        queries=_WQKV,
        keys=_WQKV,
        values=_WQKV,
        causal=False,
        gates=("Wi",),
    ),
}
"""The same for encoders with a classification head, which reads the first token."""

CROSS_ATTENTIONS = ("EncDecAttention", "encoder_attn")
"""Names of the cross-attention in the layers of decoders."""

UNMAPPED_WORKS = (
    "What works for it are answers (evaluate), familiarity (probe familiarity), input gradients "
    "(attribute --methods input_gradient) and, where it can, attention (--methods attention)"
)
"""Methods that do not need a model's modules, for messages."""


def architecture_of(model: PreTrainedModel) -> Architecture:
    """The architecture of a model, checked against its modules.

    A model type that is not listed is tried as Llama-like, the most common layout, on its own or as
    the text part of a model that also reads images.

    Raises:
        UserError: the modules are not where the architecture says, an encoder is not listed, or the
            model is a text-to-text model, which has two stacks.
    """
    kind = kind_of(model.config, [type(model).__name__])
    if kind is not CAUSAL:
        return _architecture_of_encoder(model, kind)
    listed = ARCHITECTURES.get(model.config.model_type, _LLAMA_LIKE)
    inside = ("model.", "model.language_model.", 1)
    text_part = replace(
        listed,
        layers=listed.layers.replace(*inside),
        final_norm=listed.final_norm and listed.final_norm.replace(*inside),
    )
    for architecture in (text_part, listed):
        problem = _mismatch(model, architecture)
        if problem is None:
            return architecture
    raise UserError(
        f"the architecture {model.config.model_type!r} does not have the expected structure: "
        f"{problem}, so nothing can look inside of it. {UNMAPPED_WORKS}. Known architectures are "
        f"{', '.join(ARCHITECTURES)}, and those built like Llama"
    )


def _architecture_of_encoder(model: PreTrainedModel, kind: Kind) -> Architecture:
    listed = ENCODERS.get(model.config.model_type) if kind is CLASSIFIER else None
    if listed is None:
        raise UserError(
            f"nothing can look inside of a {kind.name} of the architecture "
            f"{model.config.model_type!r}. {UNMAPPED_WORKS}. Known are causal language models, and "
            f"classifiers of the architectures {', '.join(ENCODERS)}"
        )
    problem = _mismatch(model, listed) or _other_pooling(model)
    if problem is not None:
        raise UserError(
            f"the encoder {model.config.model_type!r} does not have the expected structure: "
            f"{problem}, so nothing can look inside of it. {UNMAPPED_WORKS}"
        )
    return listed


def _other_pooling(model: PreTrainedModel) -> str | None:
    """The problem if the head does not read the first token."""
    pooling = getattr(model.config, "classifier_pooling", "cls")
    return None if pooling == "cls" else f"its head pools by {pooling!r}, not the first token"


def layers_of(model: PreTrainedModel, architecture: Architecture) -> Sequence[nn.Module]:
    """The layers, first to last."""
    return list(model.get_submodule(architecture.layers).children())


def attentions_of(model: PreTrainedModel, architecture: Architecture) -> Sequence[nn.Module]:
    """The attention module of each layer, first to last."""
    layers = layers_of(model, architecture)
    return [layer.get_submodule(architecture.attention) for layer in layers]


def _mismatch(model: PreTrainedModel, architecture: Architecture) -> str | None:
    for path in (architecture.layers, architecture.final_norm):
        if path is not None and not _has(model, path):
            return f"no module {path}"
    layers = layers_of(model, architecture)
    expected = model.config.get_text_config().num_hidden_layers
    if len(layers) != expected:
        return f"{len(layers)} layers in {architecture.layers}, the configuration says {expected}"
    for index, layer in enumerate(layers):
        for path in (architecture.attention, architecture.mlp):
            if not _has(layer, path):
                return f"no module {architecture.layers}.{index}.{path}"
    return None


def _has(module: nn.Module, path: str) -> bool:
    try:
        module.get_submodule(path)
    except AttributeError:
        return False
    return True
