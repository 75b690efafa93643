"""The forward passes of a pair, from the first token that differs, and what they leave.

1. The tokens that both prompts share are run once; their keys and values serve all passes.
2. The base and the source prompt are run from there, and the sites that are asked for are kept.
3. The source's activations are brought to the base's tokens by the alignment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer

from interp.models.architectures import attentions_of
from interp.models.hooks import recorded
from interp.models.model import Model
from interp.models.sites import View, layer_count, locate
from interp.patching.cells import PatchingPair
from interp.patching.metric import logit_difference
from interp.patching.transfer import bring, bring_pattern
from interp.reading.tokens import safe_width

KeyValues = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, (1, key-value head, token, size)."""

Embeddings = Float[Tensor, "row token size"]
Written = Float[Tensor, "token head size"]
Pattern = Float[Tensor, "head token all_tokens"]

SiteKey = tuple[str, int]
"""Site and layer."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What the pass of one prompt leaves, from the first token that differs."""

    values: Mapping[SiteKey, Tensor]
    """The tensor at each site's location: (1, token, width), or (1, head, token, token) for
    patterns."""
    key_values: KeyValues
    """Of all tokens, the shared ones included."""
    logits: Float[Tensor, "1 token"]
    """As in `Forward`."""


def embed(model: Model, token_ids: Sequence[int]) -> Float[Tensor, "1 token size"]:
    """The input embeddings of a prompt."""
    ids = torch.tensor([token_ids], device=model.device)
    embeddings: Tensor = model.hf.get_input_embeddings()(ids)
    return embeddings


@dataclass(frozen=True, slots=True)
class Forward:
    """What a forward pass gives."""

    key_values: KeyValues
    """Of the layers that ran; of the tokens before as well."""
    logits: Float[Tensor, "row token"]
    """Of the last position: of all tokens, or within `Head.reading` of the answers' alone."""


def forward(model: Model, embeddings: Embeddings, *, start: int, past: KeyValues) -> Forward:
    """Run the model on tokens that begin at position `start`, after the keys and values before."""
    rows, tokens, _ = embeddings.shape
    cache: Any = _cache(past, rows, start)
    with _sound_attention(start + tokens, embeddings.device):
        output = model.hf(
            inputs_embeds=embeddings,
            position_ids=torch.arange(start, start + tokens, device=embeddings.device)[None],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
    ran = [layer for layer in cache.layers if layer.is_initialized]
    return Forward([(layer.keys, layer.values) for layer in ran], output.logits[:, -1])


def entrance(model: Model, layer: int) -> SiteKey:
    """The residual stream that a layer reads, or that the final norm reads after the last one."""
    count = layer_count(model)
    return ("resid_pre", layer) if layer < count else ("resid_post", count - 1)


def run_pass(
    model: Model,
    embeddings: Float[Tensor, "1 token size"],
    keys: Iterable[SiteKey],
    *,
    start: int,
    past: KeyValues,
) -> Pass:
    """Run one prompt from `start` and keep sites; patterns need eager attention, for this pass."""
    keys = set(keys)
    patterned = {layer for site, layer in keys if site == "pattern"}
    locations = {key: locate(model, *key) for key in keys if key[0] != "pattern"}
    with ExitStack() as stack:
        if patterned:
            stack.enter_context(eager_attention(model))
        patterns = stack.enter_context(recorded_patterns(model, patterned))
        values = stack.enter_context(recorded(locations))
        passed = forward(model, embeddings, start=start, past=past)
    return Pass({**values, **patterns}, passed.key_values, passed.logits)


@dataclass(frozen=True, slots=True)
class PairPasses:
    """Both passes of a pair."""

    pair: PatchingPair
    prefix: KeyValues
    base: Pass
    source: Pass

    @property
    def metrics(self) -> tuple[float, float]:
        """The metric of the base and of the source prompt."""
        positive = len(self.pair.answers.positive)
        base, source = (logit_difference(p.logits, positive) for p in (self.base, self.source))
        return float(base), float(source)

    def activations(self, key: SiteKey, view: View) -> tuple[Written, Written]:
        """The base's activations at a site, and those that a patch puts in their place.

        Both run over the base's tokens from the first difference.
        """
        base, source = (view(p.values[key])[0] for p in (self.base, self.source))
        return base, bring(source, self.pair.alignment, start=self.pair.shared)

    def patterns(self, layer: int) -> tuple[Pattern, Pattern]:
        """The base's attention weights, and those that a patch writes in their place."""
        base, source = (p.values["pattern", layer][0] for p in (self.base, self.source))
        return base, bring_pattern(source, self.pair.alignment, start=self.pair.shared)

    def outputs_of_heads(self, layer: int) -> tuple[Written, Written]:
        """What the base's pattern and the written one make of the base's values."""
        values = self.base.key_values[layer][1][0]
        base, written = (heads_output(pattern, values) for pattern in self.patterns(layer))
        return base, written


def heads_output(pattern: Pattern, values: Float[Tensor, "kv_head all_tokens size"]) -> Written:
    """What attention weights make of values: the outputs of the heads."""
    repeated = values.repeat_interleave(pattern.shape[0] // values.shape[0], dim=0)
    return torch.einsum("hqk,hkd->qhd", pattern, repeated)


def run_pair(model: Model, pair: PatchingPair, keys: Iterable[SiteKey]) -> PairPasses:
    """Run both prompts of a pair once and keep the sites of `keys`, within `Head.reading`."""
    keys = list(keys)
    shared = pair.shared
    base, source = (embed(model, prompt.token_ids) for prompt in (pair.base, pair.source))
    prefix = forward(model, base[:, :shared], start=0, past=[]).key_values if shared else []
    passes = (
        run_pass(model, embeddings[:, shared:], keys, start=shared, past=prefix)
        for embeddings in (base, source)
    )
    return PairPasses(pair, prefix, *passes)


@contextmanager
def eager_attention(model: Model) -> Iterator[None]:
    """Within the block the model computes attention weights openly; restored afterwards."""
    before = model.attn_implementation
    try:
        model.hf.set_attn_implementation("eager")
        yield
    finally:
        model.hf.set_attn_implementation(before)


@contextmanager
def recorded_patterns(model: Model, layers: Iterable[int]) -> Iterator[dict[SiteKey, Tensor]]:
    """Within the block the attention weights of these layers are kept."""
    patterns: dict[SiteKey, Tensor] = {}
    attentions = attentions_of(model.hf, model.architecture)

    def keep(layer: int) -> Any:
        def record(module: nn.Module, inputs: Any, output: Any) -> None:
            patterns["pattern", layer] = output[1]

        return record

    handles = [attentions[layer].register_forward_hook(keep(layer)) for layer in layers]
    try:
        yield patterns
    finally:
        for handle in handles:
            handle.remove()


def _cache(past: KeyValues, rows: int, start: int) -> Cache:
    """A cache of the first `start` tokens, the same for each row, which nothing is copied for."""
    if not start:
        return DynamicCache()
    layers: list[Any] = []
    for keys, values in past:
        layer = DynamicLayer()  # type: ignore[no-untyped-call]  # transformers gives it no types
        layer.lazy_initialization(keys, values)
        layer.keys = keys[:, :, :start].expand(rows, -1, -1, -1)
        layer.values = values[:, :, :start].expand(rows, -1, -1, -1)
        layers.append(layer)
    return Cache(layers=layers)


def _sound_attention(width: int, device: torch.device) -> Any:
    """Plain attention at the widths at which PyTorch's fused one goes wrong (`safe_width`)."""
    return nullcontext() if safe_width(width, device) == width else sdpa_kernel(SDPBackend.MATH)
