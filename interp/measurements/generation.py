"""Texts that models generate after prompts, and the answers in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interp.measurements.core import Measurement, PromptRows
from interp.measurements.specs import Generate
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, batches
from interp.scoring.answers import NOT_FINITE
from interp.scoring.generation import Decoding, Generated, generate
from interp.tables import Row


@dataclass(frozen=True)
class GenerationMeasurement(Measurement):
    """A measurement of generated texts, whose batches leave room for these texts."""

    new_tokens: int = 0
    """Number of tokens by which each prompt may grow."""

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Batches by length, within the budget even if all texts reach their full length."""
        return batches(
            self.model, prompts, batch_tokens=self.budget.tokens, new_tokens=self.new_tokens
        )


def generation(model: Model, spec: Generate, *, batch_tokens: int | None = None) -> Measurement:
    """Measure the text a model generates after each prompt, judged by the prompt's own answer."""
    decoding = Decoding(
        max_new_tokens=spec.max_new_tokens,
        temperature=spec.temperature,
        seed=spec.sampling_seed,
        stop=spec.stop,
    )

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            found = generate(model, batch, decoding)
        return [
            {"completions": [completion_row(model, tokenized, text)]}
            if text.finite
            else error_rows(tokenized.prompt, NOT_FINITE)
            for tokenized, text in zip(batch.prompts, found, strict=True)
        ]

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        key: Row = {"model": model.name, "prompt_id": prompt.id}
        return {"completions": [{**key, "answer": "", "correct": False, "error": error}]}

    return GenerationMeasurement(
        model,
        spec,
        token_budget(model, batch_tokens),
        measure_batch,
        error_rows,
        new_tokens=spec.max_new_tokens,
    )


def completion_row(model: Model, tokenized: TokenizedPrompt, text: Generated) -> Row:
    """The row of the completions table."""
    judgement = tokenized.prompt.answer.judge(text.text)
    return {
        "model": model.name,
        "prompt_id": tokenized.prompt.id,
        "completion": text.text,
        "tokens": len(text.token_ids),
        "finished": text.finished,
        "outcome": judgement.outcome,
        "answer": judgement.answer,
        "correct": judgement.correct,
        "error": "",
    }
