"""Input x gradient (Shrikumar et al. 2016)."""

import torch
from jaxtyping import Float
from torch import Tensor

from interp.attribution.shared_pass import Captured, Need
from interp.models.model import Model


class InputXGradient:
    """Embedding . d target / d embedding of each token: its part of a linear target."""

    needs: frozenset[Need] = frozenset({"input_gradient"})

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Signed, in the target's unit."""
        # Products may cancel each other: they are summed in fp32, or in fp64 as the model's own.
        wide = torch.promote_types(captured.embeddings.dtype, torch.float32)
        products: Tensor = captured.embeddings.to(wide) * captured.input_gradient.to(wide)
        return products.sum(-1)
