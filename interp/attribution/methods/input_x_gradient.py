"""Input x gradient (Shrikumar et al. 2016)."""

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
        products: Tensor = (captured.embeddings.float() * captured.input_gradient.float()).sum(-1)
        return products
