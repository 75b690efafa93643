"""A model with the same architecture and tokenizer, whose weights are random."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch

from interp.errors import UserError
from interp.models.model import Model


def reinitialized(model: Model, *, seed: int = 0) -> Model:
    """The model as it was before training: weights drawn by its architecture's own rule.

    A second copy of the weights is held beside the first.

    Raises:
        UserError: quantized weights, which are not drawn anew.
    """
    if model.quantization is not None:
        raise UserError(
            f"the weights of {model.name} are quantized ({model.quantization}) and cannot be drawn "
            "anew; leave the re-initialised model out by --no-reinitialized"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # transformers and torch give these calls no types.
        hf: Any = type(model.hf)(deepcopy(model.hf.config))
    return replace(model, hf=hf.to(device=model.device, dtype=model.hf.dtype).eval())
