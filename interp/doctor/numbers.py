"""How far a model's logits depend on how it is run."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interp.doctor.finding import Finding
from interp.models.model import Model
from interp.models.sites import layer_count, locate, recorded
from interp.reading.readers import check_finite, reader_of
from interp.reading.tokens import TokenizedPrompt, pad

Logits = Float[Tensor, "prompt output"]

SAFE = 1e-3
"""Differences of logits above this, in fp32, are worth a look."""


@torch.no_grad()
def numbers(model: Model, prompts: Sequence[TokenizedPrompt]) -> Iterator[Finding]:
    """Differences between ways to compute the same logits.

    Raises:
        UserError: logits that are not finite.
    """
    with model.measuring():
        alone = torch.cat([_logits(model, [prompt]) for prompt in prompts])
    for prompt, logits in zip(prompts, alone, strict=True):
        if not bool(logits.isfinite().all()):
            check_finite(model, prompt)
    with model.measuring():
        together = torch.cat([_logits(model, chunk) for chunk in _chunks(model, prompts)])
        yield _difference("logits alone and in a batch", alone, together)
        if model.is_mapped:
            yield _difference("logits with and without hooks", alone, _hooked(model, prompts))


def _logits(model: Model, prompts: Sequence[TokenizedPrompt]) -> Logits:
    return reader_of(model).answer_logits(pad(model, prompts)).double().cpu()


def _chunks(model: Model, prompts: Sequence[TokenizedPrompt]) -> list[Sequence[TokenizedPrompt]]:
    """All prompts at once, or one by one where the model cannot be given padding."""
    return [prompts] if model.allows_padding else [[prompt] for prompt in prompts]


def _hooked(model: Model, prompts: Sequence[TokenizedPrompt]) -> Logits:
    places = {layer: locate(model, "resid_pre", layer) for layer in range(layer_count(model))}
    with recorded(places):
        return torch.cat([_logits(model, [prompt]) for prompt in prompts])


def _difference(about: str, one: Logits, other: Logits) -> Finding:
    largest = float((one - other).abs().max())
    changed = int((one.argmax(-1) != other.argmax(-1)).sum())
    note = f"{changed} of {len(one)} predictions change" if changed else ""
    if largest > SAFE and not changed:
        note = "usual below fp32; too much for fp32"
    return Finding(about, f"largest difference {largest:.1e}", note)
