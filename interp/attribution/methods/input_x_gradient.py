"""Input x gradient (Shrikumar et al. 2016)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from interp.attribution.shared_pass import Captured, Need
from interp.errors import UserError
from interp.models.architectures import TEXT_TO_TEXT
from interp.models.model import Model
from interp.models.sites import hooked


class InputXGradient:
    """Embedding . d target / d embedding of each token: its part of a linear target."""

    needs: frozenset[Need] = frozenset({"input_gradient"})

    def __init__(self, model: Model) -> None:
        """Take a model that reads more of an embedding than its direction."""
        refuse_normed_embeddings("input_x_gradient", model)

    def scores(self, captured: Captured) -> Float[Tensor, "batch token"]:
        """Signed, in the target's unit."""
        # Products may cancel each other: they are summed in fp32, or in fp64 as the model's own.
        wide = torch.promote_types(captured.embeddings.dtype, torch.float32)
        products: Tensor = captured.embeddings.to(wide) * captured.input_gradient.to(wide)
        return products.sum(-1)


def refuse_normed_embeddings(name: str, model: Model) -> None:
    """Refuse a model in which a norm alone reads each token's embedding, such as ModernBERT.

    Such a model answers the same whatever an embedding is multiplied by, so that embedding .
    gradient is zero by Euler's theorem; what would be shown is the remainder that the norm's
    epsilon leaves.

    Raises:
        UserError: it is one.
    """
    readers = _readers_of_embeddings(model)
    if readers and all("norm" in type(module).__name__.lower() for module in readers):
        raise UserError(
            f"the method {name} is zero for {model.name} by construction: a "
            f"{type(readers[0]).__name__} norms each token's embedding before anything else reads "
            "it, so that the answer does not depend on the embedding's length. Leave it out of "
            "--methods; input_gradient, frozen_norms and leave_one_out:deletion, for instance, "
            "take such models"
        )


def _readers_of_embeddings(model: Model) -> list[nn.Module]:
    """The modules that are handed the token embeddings themselves, by one short pass."""
    stack: Any = model.hf.get_encoder() if model.kind is TEXT_TO_TEXT else model.hf.base_model
    embedded: list[Tensor] = []
    readers: list[nn.Module] = []

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        embedded.append(output)

    def see(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        given = inputs[0] if inputs else None
        if isinstance(given, Tensor) and any(given.data_ptr() == e.data_ptr() for e in embedded):
            readers.append(module)

    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    embedding = stack.get_input_embeddings()
    hooks = embedding.register_forward_hook(keep), register_module_forward_pre_hook(see)
    with hooked(*hooks), model.measuring(), torch.no_grad():
        stack(input_ids=ids)
    return readers
