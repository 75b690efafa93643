"""The attention at the answer's position, layer by layer, for any implementation of attention.

Eager attention returns its weights, which hooks read one layer at a time; a model with an
unsupported architecture returns the weights of all layers at once (`output_attentions`). With a
fused implementation (SDPA, flash), the row of one query (heads x tokens) is recomputed from the
queries and keys, through transformers' `AttentionInterface`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interp.errors import ModelError, UserError
from interp.models.families.attention import (
    attention_logits,
    attention_seen,
    attention_weights,
    check_understood,
)
from interp.models.families.modules import CROSS_ATTENTIONS, ENCODERS
from interp.models.families.settings import MASKING_THEMSELVES
from interp.models.kinds import CAUSAL, CLASSIFIER, TEXT_TO_TEXT
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import hooked, layer_count, layers_with, locate, watched

Row = Float[Tensor, "batch token"]
"""Attention from one token to each token of the prompt, averaged over the heads of one layer."""


@contextmanager
def answer_attention(model: Model) -> Iterator[list[Row]]:
    """Append one row per layer to the yielded list in each forward pass within the block.

    A row is the attention of the token at which the answer is read. In a causal model, this is the
    last token; in a classifier, the first token, which its head pools; in a text-to-text model, the
    decoder's last token, which attends to the encoder's tokens (cross-attention). Layers without
    attention, as in partly recurrent models, append no row. The model's attention and outputs do
    not change.

    Raises:
        UserError: the attention cannot be read, or the model has no attention.
    """
    if model.kind is CLASSIFIER and not model.is_mapped:
        raise UserError(
            f"the token that the head of {model.name} ({model.hf.config.model_type}) reads is "
            f"unknown, so its attention cannot be read; expected {', '.join(ENCODERS)}. Omit the "
            "method (--methods input_gradient)"
        )
    if model.hf.config.model_type in MASKING_THEMSELVES:
        raise ModelError(
            f"{model.name} ({model.hf.config.model_type}) masks its attention by itself, so its "
            "weights cannot be read; omit the method (--methods input_gradient)"
        )
    rows: list[Row] = []
    if model.computes_attention_alone:
        record = _recorded_own
    elif model.attn_implementation != "eager":
        record = _recorded_fused
    else:
        mapped = model.kind is CAUSAL and model.is_mapped
        everywhere = mapped and len(layers_with(model, "pattern")) == layer_count(model)
        record = _recorded_eager if everywhere else _recorded_outputs
    query = 0 if model.kind is CLASSIFIER else -1

    def check(module: nn.Module, inputs: Any, output: Any) -> None:
        if not rows:
            raise ModelError(
                f"{model.name} ({model.hf.config.model_type}, {model.attn_implementation}) "
                "returns no attention; omit the method (--methods input_gradient) or, if the "
                "model has attention, load it with --attn-implementation eager"
            )

    with record(model, rows, query), hooked(model.hf.register_forward_hook(check)):
        yield rows


@contextmanager
def _recorded_outputs(model: Model, rows: list[Row], at: int) -> Iterator[None]:
    name = "cross_attentions" if model.kind is TEXT_TO_TEXT else "attentions"

    def ask(module: nn.Module, inputs: Any, options: dict[str, Any]) -> Any:
        return inputs, {**options, "output_attentions": True}

    def record(module: nn.Module, inputs: Any, output: Any) -> None:
        # Layers without attention return None.
        returned = [weights for weights in getattr(output, name, None) or () if weights is not None]
        # What RWKV returns under this name are no weights of tokens.
        maps = [weights for weights in returned if weights.dim() == 4]
        rows.extend(wide(weights[:, :, at].detach()).mean(1) for weights in maps)

    with hooked(
        model.hf.register_forward_pre_hook(ask, with_kwargs=True),
        model.hf.register_forward_hook(record),
    ):
        yield


@contextmanager
def _recorded_own(model: Model, rows: list[Row], at: int) -> Iterator[None]:
    config = model.hf.config
    before = config._attn_implementation
    # transformers' own switch changes nothing in such models, which read this while they run.
    config._attn_implementation = "eager"
    try:
        with _recorded_outputs(model, rows, at):
            yield
    finally:
        config._attn_implementation = before


@contextmanager
def _recorded_eager(model: Model, rows: list[Row], at: int) -> Iterator[None]:
    def record(weights: Tensor) -> None:
        rows.append(wide(weights[:, :, at].detach()).mean(1))

    locations = [locate(model, "pattern", layer) for layer in range(layer_count(model))]
    with watched(locations, record):
        yield


@contextmanager
def _recorded_fused(model: Model, rows: list[Row], at: int) -> Iterator[None]:
    name = model.attn_implementation
    # Masks of flex_attention are custom objects, not tensors.
    if name not in ALL_ATTENTION_FUNCTIONS or name == "flex_attention":
        raise UserError(
            f"the attention of {model.name} ({name}) cannot be read; load the model with "
            "--attn-implementation sdpa or eager, or omit the method (--methods input_gradient)"
        )
    read = {
        module
        for path, module in model.hf.named_modules()
        if model.kind is not TEXT_TO_TEXT or path.endswith(CROSS_ATTENTIONS)
    }

    def record(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        **options: Any,
    ) -> None:
        if module in read:
            rows.append(query_row(query, key, attention_mask, at, **options).mean(1))

    with attention_seen(name, record):
        yield


@torch.no_grad()
def query_row(
    query: Float[Tensor, "batch head query_token size"],
    key: Float[Tensor, "batch kv_head token size"],
    attention_mask: Tensor | None,
    at: int = -1,
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    sliding_window: int | None = None,
    s_aux: Float[Tensor, " head"] | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> Float[Tensor, "batch head token"]:
    """Attention weights of one query, in fp32: the last query, or a query that sees all tokens.

    The weights sum to 1, or to less if sinks (`s_aux`, one logit per head) receive a share. T5 adds
    `position_bias`, of shape (batch or 1, head, query, token), to the logits. A sliding window
    hides the earliest tokens from the last query, and the latest tokens from the first query.
    transformers' `attention_mask` is None (causal, without padding), a boolean or additive mask
    over (query, key), or a padding mask over keys (flash).
    """
    check_understood(others)
    batch, heads, _, size = query.shape
    kv_heads, tokens = key.shape[1], key.shape[2]
    # Query heads that share a key head are grouped, so keys need not be repeated.
    grouped = wide(query[:, :, at]).reshape(batch, kv_heads, heads // kv_heads, size)
    logits = (grouped @ wide(key).transpose(2, 3)).reshape(batch, heads, tokens)
    bias = None if position_bias is None else position_bias[:, :, at, :tokens]
    logits = attention_logits(logits, size, scaling=scaling, softcap=softcap, position_bias=bias)
    if attention_mask is not None and attention_mask.dim() == 4:
        mask = attention_mask[:, :, at, :tokens]
        logits = (
            logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
        )
    else:
        if attention_mask is not None:
            logits = logits.masked_fill(attention_mask[:, None] == 0, -torch.inf)
        if sliding_window is not None and sliding_window < tokens:
            hidden = slice(sliding_window, None) if at == 0 else slice(tokens - sliding_window)
            logits[..., hidden] = -torch.inf
    return attention_weights(logits, s_aux, partial(torch.softmax, dim=-1))
