"""The attention paid by the last prompt token, layer by layer, without eager attention.

With eager attention the weights are there to be read. With a fused implementation (SDPA, flash) the
row of the last query alone is computed again from the same queries and keys, at a memory of
heads x tokens. transformers' `AttentionInterface` is the contact with its internals.

A model outside the architecture map is asked for its weights by `output_attentions` where its
attention is eager; elsewhere whatever attention it pays through the interface is recorded.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interp.errors import UserError
from interp.models.architectures import attentions_of
from interp.models.model import Model

Row = Float[Tensor, "batch token"]
"""Attention of the last token to each token, averaged over the heads of one layer."""

_BLOCK_MASKS = ("flex_attention",)
"""Implementations whose masks are objects of their own, not tensors."""


@contextmanager
def last_token_attention(model: Model) -> Iterator[list[Row]]:
    """Within the block each forward pass appends one row a layer to the list that is yielded.

    Layers without attention, as in models that are partly recurrent, append none. The model's
    attention implementation, and so its numbers, stay what they are.

    Raises:
        UserError: the attention cannot be read, or the model pays none.
    """
    rows: list[Row] = []
    with _recorder(model)(model, rows), _refusing_none(model, rows):
        yield rows


def _recorder(model: Model) -> Callable[[Model, list[Row]], AbstractContextManager[None]]:
    if model.attn_implementation != "eager":
        return _recorded_fused
    return _recorded_eager if model.is_mapped else _recorded_outputs


@contextmanager
def _refusing_none(model: Model, rows: list[Row]) -> Iterator[None]:
    """Within the block, a forward pass that appends no row is refused."""

    def check(module: nn.Module, inputs: Any, output: Any) -> None:
        if not rows:
            raise UserError(
                f"{model.name} ({model.hf.config.model_type}, {model.attn_implementation}) tells "
                "no attention; leave the method out (--methods input_gradient) or, if it has "
                "attention, load it with --attn-implementation eager"
            )

    handle = model.hf.register_forward_hook(check)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _recorded_outputs(model: Model, rows: list[Row]) -> Iterator[None]:
    def ask(module: nn.Module, inputs: Any, options: dict[str, Any]) -> Any:
        return inputs, {**options, "output_attentions": True}

    def record(module: nn.Module, inputs: Any, output: Any) -> None:
        # Layers without attention give None.
        given = [
            weights for weights in getattr(output, "attentions", None) or () if weights is not None
        ]
        rows.extend(weights[:, :, -1].detach().float().mean(1) for weights in given)

    handles = [
        model.hf.register_forward_pre_hook(ask, with_kwargs=True),
        model.hf.register_forward_hook(record),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _recorded_eager(model: Model, rows: list[Row]) -> Iterator[None]:
    def record(module: nn.Module, inputs: Any, output: Any) -> None:
        rows.append(output[1][:, :, -1].detach().float().mean(1))

    modules = attentions_of(model.hf, model.architecture)
    handles = [module.register_forward_hook(record) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _recorded_fused(model: Model, rows: list[Row]) -> Iterator[None]:
    name = model.attn_implementation
    if name not in ALL_ATTENTION_FUNCTIONS or name in _BLOCK_MASKS:
        raise UserError(
            f"the attention of {model.name} ({name}) cannot be read; load the model with "
            "--attn-implementation sdpa or eager, or leave the method out "
            "(--methods input_gradient)"
        )
    original: Callable[..., Any] = ALL_ATTENTION_FUNCTIONS[name]
    recorded = frozenset(model.hf.modules())

    def attend_and_record(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        **options: Any,
    ) -> Any:
        if module in recorded:
            rows.append(last_row(query, key, attention_mask, **options).mean(1))
        return original(module, query, key, value, attention_mask, **options)

    AttentionInterface.register(name, attend_and_record)
    try:
        yield
    finally:
        AttentionInterface.register(name, original)


@torch.no_grad()
def last_row(
    query: Float[Tensor, "batch head token size"],
    key: Float[Tensor, "batch kv_head token size"],
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    sliding_window: int | None = None,
    s_aux: Float[Tensor, " head"] | None = None,
    **unused: Any,
) -> Float[Tensor, "batch head token"]:
    """Attention weights of the last query, in fp32.

    They sum to 1, or to less where sinks (`s_aux`, one logit a head) take a part.


    `attention_mask` is what transformers hands to an attention function: None (causal, nothing
    padded), a boolean or additive mask over (query, key), or a padding mask over keys (flash).
    """
    batch, heads, _, size = query.shape
    kv_heads, tokens = key.shape[1], key.shape[2]
    # Query heads that share a key head are grouped, so that keys need not be repeated.
    last = query[:, :, -1].float().reshape(batch, kv_heads, heads // kv_heads, size)
    logits = (last @ key.float().transpose(2, 3)).reshape(batch, heads, tokens)
    logits = logits * (size**-0.5 if scaling is None else scaling)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    if attention_mask is not None and attention_mask.dim() == 4:
        mask = attention_mask[:, :, -1, :tokens]
        logits = (
            logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
        )
    else:
        if attention_mask is not None:
            logits = logits.masked_fill(attention_mask[:, None] == 0, -torch.inf)
        if sliding_window is not None and sliding_window < tokens:
            logits[..., : tokens - sliding_window] = -torch.inf
    if s_aux is None:
        return logits.softmax(-1)
    sinks = s_aux.to(logits)[None, :, None].expand(batch, -1, -1)
    return torch.cat([logits, sinks], -1).softmax(-1)[..., :-1]
