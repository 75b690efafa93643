"""Find a model's layers: by the names of its family, or by measuring."""

from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from interp.errors import UserError, shortened
from interp.models.families.modules import (
    ARCHITECTURES,
    ENCODERS,
    HEADS_OUT,
    LLAMA_LIKE,
    Architecture,
)
from interp.models.families.settings import has_several_streams
from interp.models.kinds import CAUSAL, CLASSIFIER, Kind, kind_of
from interp.models.layers import OF_HEADS, PARALLEL, Anatomy, AttentionHeads, Layer, Part
from interp.models.module_runs import CannotMeasureError
from interp.plugins import ARCHITECTURES as PLUGINS
from interp.plugins import loaded, misfit, plugins

UNMAPPED_WORKS = (
    "It supports answers (evaluate), familiarity (probe familiarity), input gradients (attribute "
    "--methods input_gradient) and, if readable, attention (--methods attention)"
)
"""Message listing the measurements that do not require access to a model's modules."""


def anatomy_of(model: PreTrainedModel) -> Anatomy:
    """The layers of a model.

    A listed family has the modules that its names say; the layers of another causal model are
    measured, possibly as the text part of a model that reads images.

    Raises:
        UserError: modules are missing, an encoder is not listed, the layers of a causal model do
            not pass on one residual stream, or the model is a text-to-text model, which has two
            stacks.
    """
    kind = kind_of(model.config, [type(model).__name__])
    if kind is not CAUSAL:
        return _anatomy_of_encoder(model, kind)
    # A model that also reads images has the layers of its text part, such as gemma3_text.
    config = model.config.get_text_config()
    if has_several_streams(config):
        raise UserError(
            f"{model.config.model_type!r} has several residual streams (AltUp), whose sites are "
            f"not known here. {UNMAPPED_WORKS}"
        )
    names = listed_for(config)
    inside = ("model.", "model.language_model.", 1)
    text_part = replace(
        names,
        layers=names.layers.replace(*inside),
        final_norm=names.final_norm and names.final_norm.replace(*inside),
    )
    listed = _listed(config.model_type, causal=True) is not None
    fitting = [candidate for candidate in (text_part, names) if _mismatch(model, candidate) is None]
    if listed and fitting:
        return _named_anatomy(model, fitting[0])
    problem = "its weights are not in memory"
    if not all(parameter.is_meta for parameter in model.parameters()):
        from interp.models.measured_layers import measured_anatomy

        try:
            anatomy = measured_anatomy(model, names, partial(_headed, names, config, measured=True))
        except CannotMeasureError as error:
            problem = f"a pass over a few tokens failed ({shortened(str(error))})"
        else:
            if anatomy is not None:
                return anatomy
            problem = _NO_CHAIN
            fitting = []
    if fitting:  # without weights, or without gradients through them; most families resemble Llama
        return _named_anatomy(model, fitting[0])
    raise UserError(
        f"the layers of the architecture {model.config.model_type!r} cannot be inspected: "
        f"{problem}. {UNMAPPED_WORKS}"
    )


_NO_CHAIN = (
    "there is no list of layers each of which reads only the one tensor that the layer before it "
    "returned (some architectures have several residual streams, or run a layer several times)"
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
    architecture = (ARCHITECTURES if causal else ENCODERS).get(model_type)
    if architecture is not None or model_type not in plugins(PLUGINS):
        return architecture
    point = plugins(PLUGINS)[model_type]
    plugin = loaded(point)
    if not isinstance(plugin, Architecture):
        raise misfit(point, plugin, f"an {Architecture.__module__}.{Architecture.__qualname__}")
    return plugin if plugin.causal is causal else None


def _anatomy_of_encoder(model: PreTrainedModel, kind: Kind) -> Anatomy:
    listed = _listed(model.config.model_type, causal=False)
    if listed is None or kind is not CLASSIFIER:
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
    return _named_anatomy(model, listed)


def _mismatch(model: PreTrainedModel, architecture: Architecture) -> str | None:
    for path in (architecture.layers, architecture.final_norm):
        if path is not None and _at(model, path) is None:
            return f"no module {path}"
    layers = [*model.get_submodule(architecture.layers).children()]
    expected = model.config.get_text_config().num_hidden_layers
    if len(layers) != expected:
        return f"{len(layers)} layers in {architecture.layers}, but {expected} in the configuration"
    for index, layer in enumerate(layers):
        for path in (architecture.attention, architecture.mlp):
            if _at(layer, path) is None:
                return f"no module {architecture.layers}.{index}.{path}"
    return None


def _named_anatomy(model: PreTrainedModel, names: Architecture) -> Anatomy:
    config = model.config.get_text_config()
    layers = [
        _headed(names, config, _named(layer, names, config), measured=False)
        for layer in model.get_submodule(names.layers).children()
    ]
    norm = None if names.final_norm is None else model.get_submodule(names.final_norm)
    return Anatomy(layers, norm, names)


def _named(layer: nn.Module, names: Architecture, config: PreTrainedConfig) -> Layer:
    scale, lacks = names.residual_scale(config), {}
    mixer, mlp = _at(layer, names.attention_out), _at(layer, names.mlp_out)
    if mixer is None:
        lacks["attn_out"] = f"its {type(layer).__name__} has no module {names.attention_out}"
    if mlp is None:
        lacks["mlp_out"] = f"its {type(layer).__name__} has no module {names.mlp_out}"
    between = None
    # The layers of GPT-NeoX may be either.
    if names.parallel or getattr(layer, "use_parallel_residual", False):
        lacks["resid_mid"] = PARALLEL
    elif names.mlp_norm is None:
        lacks["resid_mid"] = "its norms are on the residual stream itself"
    elif (between := _at(layer, names.mlp_norm)) is None:
        lacks["resid_mid"] = f"its {type(layer).__name__} has no module {names.mlp_norm}"
    parts = [() if module is None else (Part(module, scale),) for module in (mixer, mlp)]
    reader = None if between is None else Part(between)
    return Layer(layer, parts[0], parts[1], between=reader, lacks=lacks)


def _headed(
    names: Architecture, config: PreTrainedConfig, layer: Layer, *, measured: bool
) -> Layer:
    """A layer with its heads, and with the reasons for which sites of heads are absent."""
    module = _at(layer.module, names.attention)
    if measured and (module is None or not _has_heads(module, names)):
        module = next((inner for inner in layer.module.modules() if _has_heads(inner, names)), None)
    if module is None:
        kinds = [type(part.module).__name__ for part in layer.mixer]
        reason = f"its mixer ({', '.join(kinds) or 'none'}) has no heads that are known here"
        return replace(layer, lacks={**layer.lacks, **dict.fromkeys(OF_HEADS, reason)})
    count: int = config.num_attention_heads
    shared: int = getattr(config, "num_key_value_heads", None) or count
    outs = HEADS_OUT if measured else (names.heads_out,)
    out = next((projection for path in outs if (projection := _at(module, path)) is not None), None)
    qkv = [_at(module, path) for path in names.qkv]
    kind, lacks = type(module).__name__, dict(layer.lacks)
    size = getattr(module, "head_dim", None) if measured else None
    paths, numbers = (names.heads_out, *names.qkv), (count, count, shared, shared)
    for site, projection, path, heads in zip("zqkv", (out, *qkv), paths, numbers, strict=True):
        width = getattr(projection, "in_features" if site == "z" else "out_features", None)
        if projection is None:
            lacks[site] = f"its {kind} has no module {path}"
        elif size is not None and width is not None and width != heads * size:
            lacks[site] = f"its {kind} has {width} numbers there, not {heads} heads of {size}"
    return replace(layer, heads=AttentionHeads(module, out, tuple(qkv), count, shared), lacks=lacks)


def _has_heads(module: nn.Module, names: Architecture) -> bool:
    """Whether a module is attention with an output projection and projections of its own."""
    return any(_at(module, path) is not None for path in HEADS_OUT) and any(
        _at(module, path) is not None for path in (*names.qkv, "q_b_proj", "kv_b_proj")
    )


def _at(module: nn.Module, path: str) -> Any:
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None
