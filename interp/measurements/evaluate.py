"""Answers, as data: what is measured to know how often a model is right."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from interp.measurements.spec import Spec

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model


class Evaluate(Spec):
    """Answers: probabilities of the options, prediction, correctness."""

    name: ClassVar[str] = "evaluate"
    result: ClassVar[str] = "interp.results.answers:Scores"

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Answers, and the probability of each option."""
        from interp.tables import named

        return named("answers", "option_probabilities")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.scoring import scoring

        return scoring(model, self, batch_tokens=batch_tokens)
