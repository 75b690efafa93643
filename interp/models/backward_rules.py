"""Backward rules: switches that change how gradients pass through a model.

The forward pass is unchanged, up to rounding. The switches affect three kinds of operations:

1. Norms: the denominators are treated as constants, so each norm is linear for the given tokens.
2. Attention softmax: the Jacobian is taken at logits divided by a temperature, so that it does not
   vanish if one token receives nearly all of the attention.
3. Products (of queries, keys and values, and of the two factors of a gated MLP): each factor
   receives a share of the gradient, so that a gradient through two factors is not counted twice.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from interp.errors import UserError
from interp.models.families.attention import attention_logits, attention_weights, check_understood
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import attention_by, hooked, replaced

Hidden = Float[Tensor, "*shape width"]
Logits = Float[Tensor, "row head query key"]
Norm = Callable[[Hidden], Hidden]


@dataclass(frozen=True, slots=True)
class BackwardRules:
    """The switches; the defaults give the model's own gradient."""

    frozen_norms: bool = False
    """Whether the denominators of all norms are treated as constants."""
    softmax_temperature: float = 1.0
    """Temperature T: the Jacobian of the attention softmax is taken at logits / T."""
    query_key_share: float = 1.0
    """Factor that multiplies the gradients of queries and of keys."""
    value_share: float = 1.0
    """Factor that multiplies the gradients of values."""
    gate_share: float = 1.0
    """Factor that multiplies the gradients of both factors in a gated MLP."""

    @property
    def attention(self) -> tuple[float, float, float]:
        """The switches that concern attention."""
        return self.softmax_temperature, self.query_key_share, self.value_share


PLAIN = BackwardRules()

FROZEN_NORMS = BackwardRules(frozen_norms=True)

GIM = BackwardRules(
    frozen_norms=True,
    softmax_temperature=2.0,
    query_key_share=0.25,
    value_share=0.5,
    gate_share=0.5,
)
"""Gradient interaction modifications (Edin et al. 2025). Each factor of a product receives half of
the gradient. Queries and keys are factors of two nested products."""


@contextmanager
def backward_rules(model: Model, rules: BackwardRules) -> Iterator[None]:
    """Apply the rules to gradients within the block, which must run forward and backward passes.

    Raises:
        UserError: the architecture is not supported, a norm has an unknown form, or a rule did not
            reach a layer by the end of the block.
    """
    with ExitStack() as stack:
        if rules.frozen_norms:
            stack.enter_context(_frozen_norms(model))
        if rules.attention != PLAIN.attention:
            stack.enter_context(_ruled_attention(model, rules))
        if rules.gate_share != PLAIN.gate_share:
            stack.enter_context(_shared_gates(model, rules.gate_share))
        yield


def check_rules(model: Model, rules: BackwardRules) -> None:
    """Raise a UserError, before any pass, if a model is not supported or its gates are unknown."""
    for layer in model.layers:
        if rules.gate_share != PLAIN.gate_share:
            _gates_of(model, layer.module)


def open_attention(model: Model) -> AbstractContextManager[None]:
    """Within the block, attention weights are explicit, also for padded batches in float64."""
    return _ruled_attention(model, PLAIN)


@contextmanager
def _frozen_norms(model: Model) -> Iterator[None]:
    layers = [layer.module for layer in model.layers]
    ran: set[nn.Module] = set()
    with ExitStack() as stack:
        for module in model.hf.modules():
            if "norm" in type(module).__name__.lower() and not list(module.children()):
                stack.enter_context(replaced(module, _frozen(module, ran)))
        yield
    _check_reached(model, "norms", [not ran.isdisjoint(layer.modules()) for layer in layers])


def _frozen(module: nn.Module, ran: set[nn.Module]) -> Norm:
    forward: Norm = module.forward
    forms: list[NormForm] = []

    def frozen(hidden_states: Hidden, *others: Any, **named: Any) -> Hidden:
        if others or named:
            raise UserError(
                f"{type(module).__name__} reads more than the stream, so its denominators cannot "
                "be held constant; omit methods with frozen norms"
            )
        ran.add(module)
        if not forms:
            tokens = hidden_states.detach().flatten(0, -2)
            finite = tokens[forward(tokens).isfinite().all(-1)]
            if not len(finite):  # no finite token, so no finite gradient
                return forward(hidden_states)
            forms.append(_form_of(module, forward, finite[None, :1]))
        return forms[0](hidden_states)

    return frozen


@dataclass(frozen=True, slots=True)
class NormForm:
    """(x - its mean, if centered) / sqrt(mean square + epsilon) * gain + shift."""

    gain: Tensor
    shift: Tensor
    centered: bool
    epsilon: float

    def __call__(self, hidden_states: Hidden) -> Hidden:
        """The norm's output, computed without a gradient through the denominators."""
        x = self.centred(wide(hidden_states))
        return (x * self.scale(x.detach()) * self.gain + self.shift).to(hidden_states.dtype)

    def centred(self, tensor: Hidden) -> Hidden:
        """The vectors minus their means if the norm is centered; else unchanged."""
        return tensor - tensor.mean(-1, keepdim=True) if self.centered else tensor

    def scale(self, centred: Hidden) -> Float[Tensor, "*shape 1"]:
        """The factor of each centred vector, before the gain."""
        return torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.epsilon)

    def parts(
        self, summands: Float[Tensor, "summand row token size"], total: Hidden
    ) -> Float[Tensor, "summand row token size"]:
        """What each summand of the input `total` adds to the norm's output, but for the shift."""
        x, centred_total = (self.centred(wide(tensor)) for tensor in (summands, total))
        return (x * self.scale(centred_total) * self.gain).to(summands.dtype)


def norm_form(module: nn.Module, sample: Hidden) -> NormForm:
    """The form of a norm, or a UserError if the first token of a sample shows another one."""
    return _form_of(module, module.forward, sample[:1, :1])


@torch.no_grad()
def _form_of(module: nn.Module, forward: Norm, sample: Hidden) -> NormForm:
    """The form of a norm, inferred from its output for a few vectors and checked on a sample.

    Its weights are not read, because architectures use them differently (Gemma multiplies by 1 +
    weight), and an offloaded module has its weights only while it runs.
    """
    signs = torch.ones_like(sample)  # mean 0 (if the width is even) and mean square 1
    signs[..., 1::2] = -1
    up, down, level = (wide(forward(x)) for x in (signs, -signs, signs.abs()))
    shift, slope = (up + down) / 2, (up - down) / 2
    epsilon = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    if epsilon is None:  # OLMo's has no name: the shrinking of a vector of size t tells it
        t = 1e-3
        small = wide(forward(t * signs)) - shift
        ratio = float((small.abs().sum() / slope.abs().sum()) ** 2)
        epsilon = max(0.0, t**2 * (1 - ratio) / (ratio - t**2)) if ratio > t**2 else 0.0
    form = NormForm(
        gain=(slope * signs * (1 + epsilon) ** 0.5)[0, 0],
        shift=shift[0, 0],
        # A centered norm maps a constant vector to zeros.
        centered=bool((level - shift).abs().max() < 0.5 * slope.abs().max()),
        epsilon=epsilon,
    )
    output = forward(sample)
    tolerance = max(torch.finfo(dtype).eps for dtype in (sample.dtype, torch.float32)) ** 0.5
    if not (form(sample) - output).abs().max() <= tolerance * output.abs().max():
        raise UserError(
            f"{type(module).__name__} is not a norm of a known form, so its denominators cannot "
            "be held constant; omit methods with frozen norms"
        )
    return form


@contextmanager
def _ruled_attention(model: Model, rules: BackwardRules) -> Iterator[None]:
    modules = [layer.heads.module for layer in model.layers if layer.heads is not None]
    ran: set[nn.Module] = set()
    token = _IN_FORCE.set((rules, ran.add))
    try:
        with attention_by(model, _ATTENTION):
            yield
    finally:
        _IN_FORCE.reset(token)
    _check_reached(model, "attention", [not ran.isdisjoint(module.modules()) for module in modules])


_ATTENTION = "interp_backward_rules"
"""The name under which this module's attention is registered in transformers."""

_IN_FORCE: ContextVar[tuple[BackwardRules, Callable[[nn.Module], None]]] = ContextVar(_ATTENTION)
"""The rules in force, and a callback that receives each attention module they reach."""


def _attend(
    module: nn.Module,
    query: Float[Tensor, "row head token size"],
    key: Float[Tensor, "row kv_head all_tokens size"],
    value: Float[Tensor, "row kv_head all_tokens value_size"],
    attention_mask: Float[Tensor, "#row #head token all_tokens"] | None,
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Float[Tensor, " head"] | None = None,
    position_bias: Float[Tensor, "#row head token all_tokens"] | None = None,
    **others: Any,
) -> tuple[Float[Tensor, "row token head value_size"], Logits]:
    """Attention under the rules in force, computed explicitly; `s_aux` has one logit per head."""
    check_understood(others)
    rules, ran = _IN_FORCE.get()
    ran(module)
    groups = query.shape[1] // key.shape[1]
    query = _with_share(query, rules.query_key_share)
    key = _with_share(key, rules.query_key_share).repeat_interleave(groups, 1)
    value = _with_share(value, rules.value_share).repeat_interleave(groups, 1)
    products = query @ key.transpose(2, 3)
    logits = attention_logits(
        products, query.shape[-1], scaling=scaling, softcap=softcap, position_bias=position_bias
    )
    if attention_mask is not None:
        logits = logits + attention_mask
    softmax = partial(_softmax, temperature=rules.softmax_temperature)
    weights = attention_weights(logits, s_aux, softmax).to(value.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register(_ATTENTION, _attend)
# Masks are always added to the logits; a mask of None hides nothing.
AttentionMaskInterface.register(_ATTENTION, eager_mask)


def _softmax(logits: Logits, temperature: float) -> Logits:
    """The softmax of the logits, differentiated as if at logits / temperature."""
    logits = wide(logits)
    weights = logits.softmax(-1)
    if temperature == 1.0:
        return weights
    # The Jacobian of softmax(x / T) with respect to x has a factor 1 / T, canceled here by T.
    flat = (logits / temperature).softmax(-1) * temperature
    return weights.detach() + (flat - flat.detach())


@contextmanager
def _shared_gates(model: Model, share: float) -> Iterator[None]:
    """Within the block, multiply the gradients of both factors of each gated MLP by `share`."""
    ran: set[nn.Module] = set()

    def scale(module: nn.Module, inputs: Any, output: Tensor) -> None:
        ran.add(module)
        _with_share(output, share)

    gates = [_gates_of(model, layer.module) for layer in model.layers]
    hooks = [module.register_forward_hook(scale) for factors in gates for module in factors]
    with hooked(*hooks):
        yield
    _check_reached(model, "gates", [ran.issuperset(factors) for factors in gates])


def _gates_of(model: Model, layer: nn.Module) -> list[nn.Module]:
    names, mlp = model.architecture, layer
    try:
        mlp = layer.get_submodule(names.mlp)
        return [mlp.get_submodule(path) for path in names.gates]
    except AttributeError as error:
        raise UserError(
            f"the gates of {type(mlp).__name__}, in {model.name} ({model.hf.config.model_type}), "
            "are unknown; omit methods that change its gradient, such as gim"
        ) from error


def _with_share(tensor: Tensor, share: float) -> Tensor:
    if tensor.requires_grad and share != 1.0:
        # torch makes the `grad_fn` of a view anew when it is read after the view's base was written
        # to, as keys are behind those of a shared beginning; in `register_hook`, it then crashes.
        _ = tensor.grad_fn
        tensor.register_hook(lambda gradient: gradient * share)
    return tensor


def _check_reached(model: Model, what: str, layers: Sequence[bool]) -> None:
    if not all(layers):
        raise UserError(
            f"the backward rules did not reach the {what} of layer {layers.index(False)} of "
            f"{model.name} ({model.hf.config.model_type}), so the scores would be those of another "
            "method; omit methods with changed gradients"
        )
