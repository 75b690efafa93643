"""Where each architecture keeps its layers: the one place that knows module names."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedModel

from interp.errors import UserError


@dataclass(frozen=True, slots=True)
class Architecture:
    """Module paths of a causal language model, from the model's root or from one layer."""

    layers: str
    """Path of the list of layers."""
    attention: str
    """Path of the attention within a layer."""
    mlp: str
    """Path of the MLP within a layer."""
    final_norm: str
    """Path of the norm after the last layer."""


_LLAMA_LIKE = Architecture(
    layers="model.layers",
    attention="self_attn",
    mlp="mlp",
    final_norm="model.norm",
)

ARCHITECTURES = {
    "llama": _LLAMA_LIKE,
    "mistral": _LLAMA_LIKE,
    "phi3": _LLAMA_LIKE,
    "gemma2": _LLAMA_LIKE,
    "qwen2": _LLAMA_LIKE,
    "qwen3": _LLAMA_LIKE,
    "gpt2": Architecture(
        layers="transformer.h",
        attention="attn",
        mlp="mlp",
        final_norm="transformer.ln_f",
    ),
    "gpt_neox": Architecture(
        layers="gpt_neox.layers",
        attention="attention",
        mlp="mlp",
        final_norm="gpt_neox.final_layer_norm",
    ),
}
"""`config.model_type` to its module paths."""


def architecture_of(model: PreTrainedModel) -> Architecture:
    """The architecture of a model, checked against its modules.

    A model type that is not listed is tried as Llama-like, the most common layout.

    Raises:
        UserError: the modules are not where the architecture says.
    """
    model_type = model.config.model_type
    architecture = ARCHITECTURES.get(model_type, _LLAMA_LIKE)
    problem = _mismatch(model, architecture)
    if problem:
        raise UserError(
            f"the architecture {model_type!r} does not have the expected structure: {problem}. "
            f"Known architectures are {', '.join(ARCHITECTURES)}, and those built like Llama"
        )
    return architecture


def layers_of(model: PreTrainedModel, architecture: Architecture) -> Sequence[nn.Module]:
    """The layers, first to last."""
    return list(model.get_submodule(architecture.layers).children())


def attentions_of(model: PreTrainedModel, architecture: Architecture) -> Sequence[nn.Module]:
    """The attention module of each layer, first to last."""
    layers = layers_of(model, architecture)
    return [layer.get_submodule(architecture.attention) for layer in layers]


def _mismatch(model: PreTrainedModel, architecture: Architecture) -> str | None:
    for path in (architecture.layers, architecture.final_norm):
        if not _has(model, path):
            return f"no module {path}"
    layers = layers_of(model, architecture)
    if len(layers) != model.config.num_hidden_layers:
        return f"{len(layers)} layers in {architecture.layers}, the configuration says " + str(
            model.config.num_hidden_layers
        )
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
