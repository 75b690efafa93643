"""What is measured of prompts: answers, soft answers, attributions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interp.attribution.attributor import Attributor
from interp.attribution.registry import DEFAULT_METHODS
from interp.attribution.tables import segment_score_rows, token_rows, token_score_rows
from interp.choices import TARGETS
from interp.errors import UserError, unknown
from interp.measurements.core import Measurement, PromptRows
from interp.models.model import Model
from interp.reading.budget import token_budget
from interp.reading.shared_batches import SharedBatch, shared_batches
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_rows, score_batch
from interp.scoring.shared_prefix import readable_in_parts, score_shared_batch
from interp.scoring.soft_answers import soft_score_batch
from interp.tables import SCHEMAS


@dataclass(frozen=True)
class AnswerMeasurement(Measurement):
    """A measurement of answers alone, for which tokens that prompts share are read once.

    Soft scores need the final state of every token, attributions a gradient: these read each prompt
    whole.
    """

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Batches of prompts that begin alike where that saves enough, and of others by length."""
        longest = max((len(prompt) for prompt in prompts), default=0)
        if not readable_in_parts(self.model, longest):
            return super().batches(prompts)
        return shared_batches(self.model, prompts, batch_tokens=self.budget.tokens)


def scoring(model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers: probabilities of the options, prediction, correctness."""
    answer_tokens = AnswerTokenizer(model)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            if isinstance(batch, SharedBatch):
                rows = score_shared_batch(model, batch, answer_tokens)
            else:
                rows = score_batch(model, batch, answer_tokens)
            return [{"answers": [row]} for row in rows]

    tables = {"answers": SCHEMAS["answers"]}
    budget = token_budget(model, batch_tokens)
    return AnswerMeasurement(model, "score", {}, tables, budget, measure_batch)


def soft_scoring(model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, soft accuracy and the perplexity of the prompt in one forward pass."""
    answer_tokens = AnswerTokenizer(model)
    names = ("answers", "soft_answers")

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            tables = soft_score_batch(model, batch, answer_tokens)
        return [
            {name: [row] for name, row in zip(names, rows, strict=True)}
            for rows in zip(*tables, strict=True)
        ]

    schemas = {name: SCHEMAS[name] for name in names}
    return Measurement(
        model, "soft-score", {}, schemas, token_budget(model, batch_tokens), measure_batch
    )


def attribution(
    model: Model,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    target: str = "predicted",
    token_scores: bool = False,
    batch_tokens: int | None = None,
) -> Measurement:
    """Measure answers and, by each method, the score of each segment; of each token if asked for.

    Raises:
        UserError: an unknown method or target.
    """
    if target not in TARGETS:
        raise UserError(unknown("target", target, TARGETS))
    attribute = Attributor(model, methods=methods, target=target, batch_tokens=batch_tokens)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, attributions = attribute(batch)
        answers = answer_rows(model, batch, predictions)
        rows: list[PromptRows] = []
        for prompt, answer, found in zip(batch.prompts, answers, attributions, strict=True):
            segments = segment_score_rows(model, prompt, found, target=target)
            rows.append({"answers": [answer], "segment_scores": segments})
            if token_scores:
                tokens = token_score_rows(model, prompt, found, target=target)
                rows[-1] |= {"tokens": token_rows(model, prompt), "token_scores": tokens}
        return rows

    names = ("answers", "segment_scores", *(("tokens", "token_scores") if token_scores else ()))
    tables = {name: SCHEMAS[name] for name in names}
    parameters = {"methods": list(methods), "target": target}
    return Measurement(model, "attribute", parameters, tables, attribute.budget, measure_batch)
