"""Attribution, as data: by which methods, and of what."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from interp import texts
from interp.measurements.spec import Spec
from interp.options import FromText

if TYPE_CHECKING:
    from interp.measurements.core import Measurement
    from interp.models.model import Model

Method = Literal[
    "gradient", "attention", "integrated_gradients", "input_x_gradient", "deep_lift", "occlusion"
]
Target = Literal["predicted", "gold", "contrast"]


class Attribute(Spec):
    """How much of each answer comes from either premise."""

    name: ClassVar[str] = "attribute"
    results: ClassVar[str] = "interp.report.results:of_attributions"
    report: ClassVar[str] = "interp.report.run_report:report_of_run"

    methods: Annotated[tuple[Method, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        "gradient",
        "attention",
    )
    """gradient (input gradient) and attention; by captum, prompt by prompt, also
    integrated_gradients, input_x_gradient, deep_lift and occlusion"""
    target: Target = "predicted"
    """what is attributed: the predicted token, which is the answer that the model itself prefers;
    the gold answer; or the contrast of the positive and the negative answer"""
    backend: Literal["native", "inseq"] = "native"
    """native (one pass for both methods), or inseq as in the paper"""
    keep_tokens: bool = False
    """also keep the score of every token"""

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.attribution import attribution

        return attribution(model, self, batch_tokens=batch_tokens)
