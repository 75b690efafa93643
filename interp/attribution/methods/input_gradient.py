"""Input gradient (Simonyan et al. 2014), as inseq's saliency computes and aggregates it."""

from jaxtyping import Float
from torch import Tensor

from interp.attribution.shared_pass import Captured, Need
from interp.models.model import Model


class InputGradient:
    """|d target / d embedding| of each token, in the L2 norm."""

    needs: frozenset[Need] = frozenset({"input_gradient"})

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Norms in the target's unit per unit of embedding, never negative."""
        norms: Tensor = captured.input_gradient.float().norm(dim=-1)
        return norms
