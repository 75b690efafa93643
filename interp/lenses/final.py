"""The end of a model as a linear map: the unembedding with the final norm's weight folded in.

A final norm gives g * (x - m) / s + b (`NormForm`): g is its weight, s the root mean square of
x - m, and m the mean of x in a layer norm and 0 in an RMS norm. A token's logit is then its folded
row times the final stream, divided by s, plus a constant.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from accelerate.hooks import remove_hook_from_module
from jaxtyping import Float
from torch import Tensor

from interp.errors import ModelError, UserError
from interp.models.backward_rules import NormForm, norm_form
from interp.models.model import Model
from interp.models.weights import whole


class FinalNorm:
    """The weight of a model's final norm, and the scale by which it divides.

    Raises:
        UserError: the norm is offloaded, or computes something else.
    """

    def __init__(self, model: Model) -> None:
        norm = model.anatomy.final_norm
        self.dtype = torch.promote_types(model.hf.dtype, torch.float32)
        self._form: NormForm | None = None
        if norm is None:
            return
        if any(weight.is_meta for weight in norm.parameters()):
            raise UserError(
                f"the final norm of {model.name} is offloaded, but a lens reads its weight; use "
                "devices that can hold it, or --quantization"
            )
        copied: Any = copy.deepcopy(norm)
        remove_hook_from_module(copied, recurse=True)  # accelerate's, which moves inputs
        copied.to("cpu", self.dtype)
        width = len(next(iter(norm.parameters()), torch.empty(model.text_config.hidden_size)))
        probe = 1 + torch.randn(1, 1, width, generator=torch.Generator().manual_seed(0))
        try:
            self._form = norm_form(copied, probe.to(self.dtype))
        except UserError as error:
            raise ModelError(
                f"the final norm of {model.name} ({model.hf.config.model_type}) is neither a layer "
                "norm nor an RMS norm, so a lens cannot fold its weight into the unembedding"
            ) from error

    def folded(self, rows: Float[Tensor, "word width"]) -> Float[Tensor, "word width"]:
        """Rows of the unembedding, as they act on the stream before the final norm."""
        return rows if self._form is None else self._form.centred(rows * self._form.gain)

    def scale(self, streams: Float[Tensor, "*place width"]) -> Float[Tensor, "*place"]:
        """What the norm divides each stream by; 1 if there is no norm."""
        if self._form is None:
            return torch.ones(streams.shape[:-1], dtype=self.dtype)
        centred = self._form.centred(streams.to("cpu", self.dtype))
        return 1 / self._form.scale(centred)[..., 0]


@torch.no_grad()
def unembedding_rows(model: Model, token_ids: Sequence[int]) -> Float[Tensor, "word width"]:
    """Rows U[w] of tokens, with the final norm's weight folded in, on the CPU.

    In fp32 (fp64 for fp64 models). They give logits before any soft cap.
    """
    check_lens(model)
    norm = FinalNorm(model)
    unembedding: Any = model.unembedding
    weight = whole(unembedding.weight)
    if weight.is_meta:
        raise UserError(
            f"the unembedding of {model.name} is offloaded, but a lens reads its rows; use devices "
            "that can hold it, or --quantization"
        )
    chosen = weight[torch.tensor(token_ids, device=weight.device)].to("cpu", norm.dtype)
    return norm.folded(chosen * model.logit_scale)


def check_lens(model: Model) -> None:
    """Raise a UserError unless a model has a stream that its unembedding turns into words."""
    if not model.architecture.causal or model.kind.reads_ahead:
        raise UserError(
            f"{model.name} is a {model.kind.name}; a lens reads which words a causal language "
            "model is going to say. Use patch, which takes other models too"
        )
    model.check_whole("a lens")
    model.check_differentiable("a lens")
    weight = getattr(model.unembedding, "weight", None)
    width = model.text_config.hidden_size
    direct = weight is not None and weight.dim() == 2 and weight.shape[1] == width
    if not direct or any(layer.streams > 1 for layer in model.layers):
        raise ModelError(
            f"the unembedding of {model.name} ({model.hf.config.model_type}) does not read one "
            "residual stream directly, so no direction of the stream stands for a word"
        )
