"""Answers, as data: what is measured to know how often a model is right."""

from typing import TYPE_CHECKING, ClassVar

from interp.measurements.spec import Spec

if TYPE_CHECKING:
    from interp.measurements.core import Measurement
    from interp.models.model import Model


class Evaluate(Spec):
    """Answers: probabilities of the options, prediction, correctness."""

    name: ClassVar[str] = "evaluate"
    results: ClassVar[str] = "interp.report.results:of_answers"
    report: ClassVar[str] = "interp.report.run_report:report_of_run"

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.scoring import scoring

        return scoring(model, self, batch_tokens=batch_tokens)
