"""Checks that a model can be patched, and that its sites and metric are what their names say.

Each site is checked separately on one prompt, so an unusual architecture loses only the sites that
fail. `resid_pre` and `resid_post` only require that layers pass on a residual stream.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import ModelError, UserError
from interp.models.cache import runs_in_parts
from interp.models.model import Model
from interp.models.sites import layer_count, layers_with
from interp.models.unembedding import ExactLogits, agree
from interp.patching.cells import PatchingPair
from interp.patching.exact import run_from
from interp.patching.passes import (
    Pass,
    SiteKey,
    answers_alone,
    embed,
    entrance,
    heads_output,
    run_pair,
    run_pass,
)
from interp.reading.tokens import TokenizedPrompt, pad
from interp.scoring.answer_tokens import ContrastTokens
from interp.scoring.whole_answers import read_behind

SHARE = 0.02
"""Largest error in a token's activations that rounding explains, relative to the summands."""

SUMS = {
    "attn_out": ("resid_pre", "attn_out", "mlp_out", "resid_post"),
    "mlp_out": ("resid_pre", "attn_out", "mlp_out", "resid_post"),
    "resid_mid": ("resid_pre", "attn_out", "resid_mid"),
}
"""For each site to check, the sites in a sum: the last one must be the sum of the others."""


def check_causal(model: Model, what: str) -> None:
    """Reject a kind of patching that works only for causal models."""
    if not model.architecture.causal:
        raise UserError(
            f"{model.name} is a {model.kind.name}, which can only be patched natively and "
            f"exactly, not by {what}; omit estimate and backend"
        )


@torch.no_grad()
def check_sums(model: Model, prompt: TokenizedPrompt, sites: Sequence[str]) -> None:
    """Check that a causal model adds only its sites to the stream; measured layers were checked."""
    for site in [] if model.anatomy.measured else sites:
        if site not in SUMS:
            continue
        *added, after = SUMS[site]
        values = _activations(model, prompt, SUMS[site]).values
        for layer in layers_with(model, site):
            total = values[after, layer][0]
            summands = [values[part, layer][0] for part in added if (part, layer) in values]
            if not _equal(torch.stack([summand.to(total) for summand in summands]), total):
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
    """Check that each head's output is its attention weights times the cached values."""
    if not runs_in_parts(model):
        raise UserError(
            f"the layers of {model.name} ({model.hf.config.model_type}) keep more than keys and "
            "values, so the site pattern cannot be patched; omit the site, or patch z"
        )
    passed = _activations(model, pair.base, ("pattern", "z"))
    for layer in layers_with(model, "pattern"):
        if layer >= len(passed.key_values):
            raise UserError(f"layer {layer} of {model.name} keeps no keys and values; omit pattern")
        values = passed.key_values[layer][1][0].float()
        pattern, z = (passed.values[site, layer][0].to(values) for site in ("pattern", "z"))
        fits = z.shape[1] == len(pattern) * values.shape[-1]
        if not fits or not _equal(heads_output(pattern, values).flatten(1)[None], z):
            raise UserError(
                f"the heads of {model.name} ({model.hf.config.model_type}, layer {layer}) do not "
                "output their attention weights times their values, so patching the site "
                "pattern would be wrong; omit the site, or patch z"
            )


@torch.no_grad()
def check_passes(model: Model, pair: PatchingPair) -> None:
    """Check that running a prompt in parts, or from a later layer on, leaves its logits alone."""
    last = layer_count(model) - 1
    with answers_alone(ExactLogits(model), pair.answers):
        passes = run_pair(model, pair, [entrance(model, last)])
        skipping = run_from(model, passes, last, [], rows=1, start=pair.shared)
    for prompt, logits in (
        (pair.base, passes.base.logits),
        (pair.source, passes.source.logits),
        (pair.base, skipping),
    ):
        plain = _read_plainly(model, prompt, pair.answers)
        if not agree(model, logits, plain):
            difference = float((logits.cpu() - plain.cpu().to(logits.dtype)).abs().max())
            raise UserError(
                f"{model.name} ({model.hf.config.model_type}) cannot be patched by the native "
                f"backend: when it is run in parts, its logits are off by {difference:.3g}. Use "
                "--backend transformer-lens or nnsight"
            )


def _read_plainly(
    model: Model, prompt: TokenizedPrompt, answers: ContrastTokens
) -> Float[Tensor, "1 answer"]:
    """The answers' logits from passes over the whole prompt and, for whole texts, what follows."""
    ids = torch.tensor([prompt.token_ids], device=model.device)
    logits: Tensor = model.hf(input_ids=ids, use_cache=False, logits_to_keep=1).logits[:, -1]
    if answers.ways:
        behind = read_behind(model, pad(model, [prompt]), [answers.ways], logits)
        logits = torch.cat([logits, behind.ways.to(logits)], 1)
    return logits[:, [*answers.positive, *answers.negative]]


def _activations(model: Model, prompt: TokenizedPrompt, sites: Sequence[str]) -> Pass:
    """A pass over a prompt that keeps its activations at some sites, where layers have them."""
    keys: list[SiteKey] = [(site, layer) for site in sites for layer in layers_with(model, site)]
    return run_pass(model, prompt, embed(model, prompt.token_ids), keys, start=0, past=[])


def _equal(
    summands: Float[Tensor, "summand token width"], total: Float[Tensor, "token width"]
) -> bool:
    """Whether the summands add up to the total at every token, within rounding error."""
    summands, total = summands.float(), total.float()
    error = (summands.sum(0) - total).norm(dim=-1)
    size = summands.norm(dim=-1).sum(0)
    return not bool((error > SHARE * size).any())
