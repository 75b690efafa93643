"""Checks that a model can be patched, and that its sites and metric are what their names say.

Each site is checked separately on one prompt, so an unusual architecture loses only the sites that
fail. `resid_pre` and `resid_post` only require that layers pass on a residual stream.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import ModelError, UserError
from interp.models.architectures import UNMAPPED_WORKS
from interp.models.families.settings import keeps_indexer_keys
from interp.models.model import Model
from interp.models.sites import layer_count
from interp.models.unembedding import ExactLogits, agree
from interp.patching.cells import PatchingPair
from interp.patching.exact import run_from
from interp.patching.passes import (
    SiteKey,
    answers_alone,
    embed,
    entrance,
    heads_output,
    run_pair,
    run_pass,
)
from interp.reading.tokens import TokenizedPrompt

SHARE = 0.02
"""Largest error in a token's activations that rounding explains, relative to the summands."""

SUMS = {
    "attn_out": ("resid_pre", "attn_out", "mlp_out", "resid_post"),
    "mlp_out": ("resid_pre", "attn_out", "mlp_out", "resid_post"),
    "resid_mid": ("resid_pre", "attn_out", "resid_mid"),
}
"""For each site to check, the sites in a sum: the last one must be the sum of the others."""


def check_causal(model: Model, what: str) -> None:
    """Reject a kind of patching that works only for causal models.

    Raises:
        UserError: the model is an encoder.
    """
    if not model.architecture.causal:
        raise UserError(
            f"{model.name} is a {model.kind.name}, which can only be patched natively and "
            f"exactly, not by {what}; omit estimate and backend"
        )


@torch.no_grad()
def check_sums(model: Model, prompt: TokenizedPrompt, sites: Sequence[str]) -> None:
    """Check on one prompt that a causal model adds nothing but its sites to the residual stream.

    Raises:
        UserError: the model adds something else, for instance because its architecture has an
            unmapped norm.
    """
    for site in sites:
        if site not in SUMS:
            continue
        for layer, (before, *added, after), _ in _by_layer(model, prompt, SUMS[site]):
            scaled = [model.residual_scale * tensor for tensor in added]
            if not _equal(torch.stack([before, *scaled]), after):
                raise wrong_sum(model, site, layer)


def wrong_sum(model: Model, site: str, layer: int) -> ModelError:
    """The error about a site that is not all that is added to the residual stream there."""
    return ModelError(
        f"layer {layer} of {model.name} ({model.hf.config.model_type}) adds more to the residual "
        f"stream than the toolkit can measure, so its {site} would be wrong; omit this site "
        "(resid_pre and resid_post are valid in every architecture), or patch it with --backend "
        "transformer-lens"
    )


@torch.no_grad()
def check_patterns(model: Model, pair: PatchingPair) -> None:
    """Check that each head's output is its attention weights times the cached values.

    Raises:
        UserError: heads output something else, as in differential or latent attention.
    """
    for layer, (pattern, z), values in _by_layer(model, pair.base, ("pattern", "z")):
        fits = z.shape[1] == len(pattern) * values.shape[-1]
        if not fits or not _equal(heads_output(pattern, values).flatten(1)[None], z):
            raise UserError(
                f"the heads of {model.name} ({model.hf.config.model_type}, layer {layer}) do not "
                "output their attention weights times their values, so patching the site "
                "pattern would be wrong; omit the site, or patch z"
            )


@torch.no_grad()
def check_passes(model: Model, pair: PatchingPair) -> None:
    """Check that running a prompt in parts, or from a later layer on, does not change its logits.

    Raises:
        UserError: the logits differ, or layers keep more than keys and values.
    """
    if keeps_indexer_keys(model.text_config):
        raise ModelError(
            f"the layers of {model.name} ({model.hf.config.model_type}) keep the keys of an "
            f"indexer beside keys and values, so it cannot be run in parts. {UNMAPPED_WORKS}"
        )
    last = layer_count(model) - 1
    with answers_alone(ExactLogits(model), pair.answers):
        passes = run_pair(model, pair, [entrance(model, last)])
        skipping = run_from(model, passes, last, [], rows=1, start=pair.shared)
    tokens = [*pair.answers.positive, *pair.answers.negative]
    for prompt, found in (
        (pair.base, passes.base.logits),
        (pair.source, passes.source.logits),
        (pair.base, skipping),
    ):
        ids = torch.tensor([prompt.token_ids], device=model.device)
        own = model.hf(input_ids=ids, use_cache=False, logits_to_keep=1).logits[:, -1, tokens]
        if not agree(model, found, own):
            difference = float((found.cpu() - own.cpu().to(found.dtype)).abs().max())
            raise UserError(
                f"{model.name} ({model.hf.config.model_type}) cannot be patched by the native "
                f"backend: when it is run in parts, its logits are off by {difference:.3g}. Use "
                "--backend transformer-lens or nnsight"
            )


def _by_layer(
    model: Model, prompt: TokenizedPrompt, sites: Sequence[str]
) -> Iterator[tuple[int, list[Tensor], Tensor]]:
    """For each layer, a prompt's activations at some sites and the values that attention reads.

    All tensors of a layer are moved to one device. If a model is spread over several devices, a
    layer's input may still be on another device.
    """
    layers = range(layer_count(model))
    keys: list[SiteKey] = [(site, layer) for site in sites for layer in layers]
    passed = run_pass(model, embed(model, prompt.token_ids), keys, start=0, past=[])
    for layer in layers:
        values = passed.key_values[layer][1][0].float()
        yield layer, [passed.values[site, layer][0].to(values) for site in sites], values


def _equal(
    summands: Float[Tensor, "summand token width"], total: Float[Tensor, "token width"]
) -> bool:
    """Whether the summands add up to the total at every token, within rounding error."""
    error = (summands.sum(0) - total).norm(dim=-1)
    size = summands.norm(dim=-1).sum(0)
    return not bool((error > SHARE * size).any())
