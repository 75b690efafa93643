"""Answers, soft accuracy and perplexity of a model: what is measured for `SoftScore`."""

from interp.measurements.core import Measurement, PromptRows
from interp.measurements.scoring import answer_error
from interp.measurements.soft_score import SoftScore
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.soft_answers import soft_score_batch
from interp.tables import Row


def soft_scoring(model: Model, spec: SoftScore, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, soft accuracy and the perplexity of the prompt in one forward pass."""
    answer_tokens = AnswerTokenizer(model)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            return soft_score_batch(model, batch, answer_tokens)

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        undefined: Row = {"model": model.name, "prompt_id": prompt.id, "error": error}
        return {**answer_error(model, prompt, error), "soft_answers": [undefined]}

    budget = token_budget(model, batch_tokens)
    return Measurement(model, spec, spec.tables(), budget, measure_batch, error_rows)
