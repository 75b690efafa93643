"""Kinds of models, and the names of the modules in each architecture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from interp.errors import UserError


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties that all models of one kind share."""

    name: str
    auto: Any
    """The transformers class that loads most models of this kind."""
    reads_ahead: bool
    """Whether tokens attend to later tokens. If so, prompts with the same beginning share no
    states."""

    def auto_for(self, config: PreTrainedConfig) -> Any:
        """The transformers class that loads a model of this kind with this configuration.

        Some causal models that also read images, such as Qwen2.5-VL, have no class for text alone.

        Raises:
            UserError: transformers has no class for models of this type.
        """
        classes = [self.auto, *[AutoModelForImageTextToText] * (not self.reads_ahead)]
        for auto in classes:
            if type(config) in auto._model_mapping or hasattr(config, "auto_map"):
                return auto
        raise UserError(
            f"transformers has no {self.name} of the type {config.model_type!r}; expected one that "
            "answers texts, such as the language model that it is made of, saved by itself"
        )


CAUSAL = Kind("causal language model", AutoModelForCausalLM, reads_ahead=False)
CLASSIFIER = Kind("sequence classifier", AutoModelForSequenceClassification, reads_ahead=True)
TEXT_TO_TEXT = Kind("text-to-text model", AutoModelForSeq2SeqLM, reads_ahead=True)


def kind_of(config: PreTrainedConfig, architectures: Sequence[str]) -> Kind:
    """The kind of a model, from its class names or, failing that, from its configuration.

    The class names of causal models that also read images end in ForConditionalGeneration, like
    those of text-to-text models.

    Raises:
        UserError: the model has no head that can give an answer; masked language models have none.
    """
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        return CLASSIFIER
    if any(name.endswith("ForMaskedLM") for name in architectures):
        raise UserError(
            f"{', '.join(architectures)} fills masks and cannot answer; expected a causal "
            "language model, a sequence classifier or a text-to-text model"
        )
    headless = architectures and all(n.endswith("Model") and "Head" not in n for n in architectures)
    if headless and getattr(config, "model_type", "") in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise UserError(
            f"{', '.join(architectures)} has no head and cannot answer; expected a causal "
            "language model, a sequence classifier or a text-to-text model"
        )
    return TEXT_TO_TEXT if getattr(config, "is_encoder_decoder", False) else CAUSAL


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
    of contributions.
    """
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
    empty if the MLP has no gate.
    """


_LLAMA_LIKE = Architecture(
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

_NORMS_AROUND = replace(
    _LLAMA_LIKE,
    attention_out="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_out="post_feedforward_layernorm",
)
_NORMS_AFTER = replace(_NORMS_AROUND, mlp_norm="mlp")

_TOGETHER = ("gate_up_proj",)

ARCHITECTURES = {
    "llama": _LLAMA_LIKE,
    "mistral": _LLAMA_LIKE,
    "phi3": replace(_LLAMA_LIKE, qkv=("qkv_proj",) * 3, layout="stacked", gates=_TOGETHER),
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
        qkv=("c_attn",) * 3,
        layout="stacked",
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
        qkv=("query_key_value",) * 3,
        layout="interleaved",
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
    "modernbert": Architecture(
        layers="model.layers",
        attention="attn",
        mlp="mlp",
        final_norm="model.final_norm",
        attention_out="attn",
        mlp_norm="mlp_norm",
        mlp_out="mlp",
        heads_out="Wo",
        qkv=("Wqkv",) * 3,
        layout="stacked",
        causal=False,
        gates=("Wi",),
    ),
}
"""Module paths in encoders whose classification head reads the first token."""

CROSS_ATTENTIONS = ("EncDecAttention", "encoder_attn")
"""Names of the cross-attention module in decoder layers."""

UNMAPPED_WORKS = (
    "It supports answers (evaluate), familiarity (probe familiarity), input gradients (attribute "
    "--methods input_gradient) and, if readable, attention (--methods attention)"
)
"""Message listing the measurements that do not require access to a model's modules."""


def architecture_of(model: PreTrainedModel) -> Architecture:
    """The architecture of a model, checked against its modules.

    A model type that is not listed is assumed to have the layout of Llama, the most common one,
    possibly as the text part of a model that reads images.

    Raises:
        UserError: modules are missing, an encoder is not listed, or the model is a text-to-text
            model, which has two stacks.
    """
    kind = kind_of(model.config, [type(model).__name__])
    if kind is not CAUSAL:
        return _architecture_of_encoder(model, kind)
    # A model that also reads images has the layers of its text part, such as gemma3_text.
    listed = ARCHITECTURES.get(model.config.get_text_config().model_type, _LLAMA_LIKE)
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
        f"the architecture {model.config.model_type!r} cannot be inspected, because it does not "
        f"have the expected structure: {problem}. {UNMAPPED_WORKS}. Known architectures are "
        f"{', '.join(ARCHITECTURES)}, and those built like Llama"
    )


def _architecture_of_encoder(model: PreTrainedModel, kind: Kind) -> Architecture:
    listed = ENCODERS.get(model.config.model_type) if kind is CLASSIFIER else None
    if listed is None:
        raise UserError(
            f"a {kind.name} of the architecture {model.config.model_type!r} "
            f"cannot be inspected. {UNMAPPED_WORKS}. Most causal language models and the "
            f"classifiers {', '.join(ENCODERS)} can be inspected"
        )
    problem = _mismatch(model, listed)
    pooling = getattr(model.config, "classifier_pooling", "cls")
    if problem is None and pooling != "cls":
        problem = f"its head uses {pooling!r} pooling instead of the first token"
    if problem is not None:
        raise UserError(
            f"the encoder {model.config.model_type!r} cannot be inspected, because it does not "
            f"have the expected structure: {problem}. {UNMAPPED_WORKS}"
        )
    return listed


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
        return f"{len(layers)} layers in {architecture.layers}, but {expected} in the configuration"
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
