"""Gradient methods, which use the gradients of a batch's shared passes.

A norm divides its input by the input's length, so its gradient loses the component along the input,
which makes up much of a token's contribution to the answer. `FrozenNorms` therefore keeps the
denominators constant (Ali et al. 2022), and `Gim` also changes the rules of softmax and products
(Edin et al. 2025).
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from interp.attribution.method import AnyModel, Captured, Need
from interp.errors import UserError
from interp.models.backward_rules import FROZEN_NORMS, GIM, check_rules
from interp.models.kinds import TEXT_TO_TEXT
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import hooked


class InputGradient(AnyModel):
    """|d target / d embedding| of each token (L2 norm)."""

    needs: frozenset[Need] = frozenset({"input_gradient"})

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Non-negative norms in the target's units per unit of embedding."""
        norms: Tensor = wide(captured.input_gradient).norm(dim=-1)
        return norms


class InputXGradient:
    """Embedding . d target / d embedding; a UserError if norms alone read the embeddings."""

    needs: frozenset[Need] = frozenset({"input_gradient"})

    def __init__(self, model: Model) -> None:
        readers = _readers_of_embeddings(model)
        # In ModernBERT, for instance: embedding . gradient is zero by Euler's theorem, and scores
        # would reflect only the norm's epsilon.
        if readers and all("norm" in type(module).__name__.lower() for module in readers):
            raise UserError(
                f"the method input_x_gradient is zero for {model.name} by construction: a "
                f"{type(readers[0]).__name__} normalizes each token's embedding before anything "
                "else reads it, so the answer does not depend on the embedding's length. Omit the "
                "method from --methods; input_gradient, frozen_norms and leave_one_out:deletion, "
                "for instance, support such models"
            )

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Signed scores in the target's units."""
        # Products may cancel, so they are summed in fp32, or in fp64 for fp64 models.
        products: Tensor = wide(captured.embeddings) * wide(captured.input_gradient)
        return products.sum(-1)


def _readers_of_embeddings(model: Model) -> list[nn.Module]:
    """The modules that read the token embeddings directly, as observed in one short pass."""
    stack: Any = model.hf.get_encoder() if model.kind is TEXT_TO_TEXT else model.hf.base_model
    embedded: list[Tensor] = []
    readers: list[nn.Module] = []

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        embedded.append(output)

    def see(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        first = inputs[0] if inputs else None
        if isinstance(first, Tensor) and any(first.data_ptr() == e.data_ptr() for e in embedded):
            readers.append(module)

    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    owner = stack if model.kind is TEXT_TO_TEXT else model.hf
    embedding = owner.get_input_embeddings()
    hooks = embedding.register_forward_hook(keep), register_module_forward_pre_hook(see)
    with hooked(*hooks), model.measuring(), torch.no_grad():
        stack(input_ids=ids)
    return readers


class FrozenNorms(InputXGradient):
    """Embedding . gradient through norms whose denominators are constants.

    Raises:
        UserError: the model's architecture is not supported.
    """

    rules = FROZEN_NORMS

    def __init__(self, model: Model) -> None:
        check_rules(model, self.rules)


class Gim:
    """(Embedding - donor's embedding) . gradient by the rules of GIM.

    Raises:
        UserError: the model's architecture is not supported, or its gates are unknown.
    """

    needs: frozenset[Need] = frozenset({"donor_products"})
    rules = GIM

    def __init__(self, model: Model) -> None:
        check_rules(model, self.rules)

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Signed scores in the target's units; zero where the donor has the same token."""
        return captured.donor_products
