"""Attribution, as data: by which methods, and of what."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

from pydantic import model_validator

from interp import texts
from interp.attribution.registry import (
    DEFAULT_METHODS,
    check_methods,
    find_method,
    method_names,
)
from interp.measurements.spec import Prompts, Spec
from interp.options import FromText
from interp.prompts.donors import DONORS

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model

Target = Literal["predicted", "gold", "contrast", "margin"]


def _method_names(text: str) -> tuple[str, ...]:
    return texts.some_of("method", method_names())(text)


class Attribute(Spec):
    """How much of each answer comes from each segment of its prompt."""

    name: ClassVar[str] = "attribute"
    result: ClassVar[str] = "interp.results.attributions:Attributions"

    methods: Annotated[tuple[str, ...], FromText(_method_names, "NAME")] = DEFAULT_METHODS
    """attribution methods; `interp methods` lists them"""
    target: Target = "predicted"
    """what is attributed: the predicted token, which is the answer that the model itself prefers;
    the gold answer; the contrast of the two options that the data contrasts, or else of the gold
    answer and the likeliest other; or the margin, the model's own answer against the other of these
    two, or else the likeliest other, each in all its forms, as `effects` measures it"""
    keep_tokens: bool = False
    """also keep the tokens, and the score of each"""

    @model_validator(mode="after")
    def _check_methods(self) -> "Attribute":
        check_methods(self.methods)
        return self

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, with donors where a method reads them."""
        if not any(find_method(name).donors for name in self.methods):
            return prompts
        from interp.prompts.mixing import with_donors

        return cast("Prompts", with_donors(prompts, count=DONORS))

    def modules(self) -> Sequence[str]:
        """The module of the spec, and those of its methods."""
        own = (find_method(name).implementation.partition(":")[0] for name in self.methods)
        return (*super().modules(), *own)

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Answers, scores of segments, and with `keep_tokens` tokens and their scores."""
        from interp.tables import named

        return named("answers", "option_probabilities", "segment_scores", "tokens", "token_scores")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.attribution import attribution

        return attribution(model, self, batch_tokens=batch_tokens)
