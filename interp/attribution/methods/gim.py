"""Gradient interaction modifications (Edin et al. 2025)."""

from jaxtyping import Float
from torch import Tensor

from interp.attribution.counterfactual import counterfactual_embeddings
from interp.attribution.shared_pass import Captured, Need
from interp.models.backward_rules import GIM, check_rules
from interp.models.model import Model


class Gim:
    """(Embedding - donor's embedding) . gradient by the rules of GIM.

    Raises:
        UserError: the model's architecture is not understood, or its gates are not known.
    """

    needs: frozenset[Need] = frozenset({"input_gradient"})
    rules = GIM

    def __init__(self, model: Model) -> None:
        check_rules(model, self.rules)
        self._model = model

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Signed, in the target's unit; zero where the donor has the same token."""
        donors = counterfactual_embeddings(self._model, captured.batch)
        differences = captured.embeddings.float() - donors.float()
        products: Tensor = (differences * captured.input_gradient.float()).sum(-1)
        return products
