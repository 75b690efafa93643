"""Soft scores, as data: what is measured of answers that are compared in probability."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from interp.measurements.spec import Spec

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model


class SoftScore(Spec):
    """Answers, soft accuracy, and the perplexity of the prompt."""

    name: ClassVar[str] = "soft-score"
    result: ClassVar[str] = "interp.results.answers:Scores"

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Answers, the probability of each option, and soft scores."""
        from interp.tables import named

        return named("answers", "option_probabilities", "soft_answers")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.soft_scoring import soft_scoring

        return soft_scoring(model, self, batch_tokens=batch_tokens)
