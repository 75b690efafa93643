"""Attribution of a model whose weights were drawn anew, as data: a control."""

from typing import TYPE_CHECKING, ClassVar

from interp.measurements.attribute import Attribute

if TYPE_CHECKING:
    from interp.measurements.core import Measurement
    from interp.models.model import Model


class Reinitialized(Attribute):
    """Attribution of the same prompts by the same architecture before training.

    What its scores say of the trained model is chance (Adebayo et al. 2018); a method that agrees
    with the trained model's effects all the same reads the prompt, not the model.
    """

    name: ClassVar[str] = "attribute-reinitialized"
    own_answers: ClassVar[bool] = False

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model's architecture with random weights."""
        from interp.models.load import reinitialized

        return super().bind(reinitialized(model), batch_tokens=batch_tokens)
