"""Find a model's architecture, and check it against the model's modules."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from interp.errors import UserError
from interp.models.families.modules import ARCHITECTURES, ENCODERS, LLAMA_LIKE, Architecture
from interp.models.kinds import CAUSAL, CLASSIFIER, Kind, kind_of
from interp.plugins import ARCHITECTURES as PLUGINS
from interp.plugins import loaded, misfit, plugins

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
    listed = listed_for(model.config.get_text_config())
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


def listed_for(config: PreTrainedConfig, *, causal: bool = True) -> Architecture:
    """The architecture listed for a model's text configuration; by default, Llama's."""
    return _listed(config.model_type, causal=causal) or LLAMA_LIKE


def family_modules(config: PreTrainedConfig) -> tuple[str, ...]:
    """The module of another package that describes a family, as the text configuration names it."""
    kind = config.model_type
    point = None if kind in ARCHITECTURES or kind in ENCODERS else plugins(PLUGINS).get(kind)
    return () if point is None else (point.module,)


def _listed(model_type: str, *, causal: bool) -> Architecture | None:
    """The architecture of this package or of another package for a model type.

    Raises:
        UserError: another package's entry point cannot be loaded, or refers to something else.
    """
    own = (ARCHITECTURES if causal else ENCODERS).get(model_type)
    if own is not None or model_type not in plugins(PLUGINS):
        return own
    point = plugins(PLUGINS)[model_type]
    found = loaded(point)
    if not isinstance(found, Architecture):
        raise misfit(point, found, f"an {Architecture.__module__}.{Architecture.__qualname__}")
    return found if found.causal is causal else None


def _architecture_of_encoder(model: PreTrainedModel, kind: Kind) -> Architecture:
    own = _listed(model.config.model_type, causal=False)
    listed = own if kind is CLASSIFIER else None
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
