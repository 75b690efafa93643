"""What models generate behind prompts, and what is answered there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interp.measurements.core import Measurement, PromptRows
from interp.models.model import Model
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, batches
from interp.scoring.generation import Decoding, Generated, generate
from interp.tables import SCHEMAS, Row

MAX_NEW_TOKENS = 256


@dataclass(frozen=True)
class GenerationMeasurement(Measurement):
    """A measurement of generated texts, whose batches leave room for what is generated."""

    new_tokens: int = 0
    """Tokens that each prompt may grow by."""

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Batches by length, under the budget when all texts have their full length."""
        return batches(
            self.model, prompts, batch_tokens=self.budget.tokens, new_tokens=self.new_tokens
        )


def generation(
    model: Model,
    *,
    max_new_tokens: int = MAX_NEW_TOKENS,
    temperature: float = 0.0,
    seed: int = 0,
    stop: Sequence[str] = (),
    batch_tokens: int | None = None,
) -> Measurement:
    """Measure what a model generates behind each prompt, judged by the prompt's own answer.

    Args:
        model: the model.
        max_new_tokens: most tokens of a text.
        temperature: 0 takes the most probable token, above that tokens are sampled.
        seed: decides, with the prompt's id, what is sampled.
        stop: texts that end the generation; they and what follows are left out.
        batch_tokens: budget of tokens per batch, padding and generated texts included.

    Raises:
        UserError: an option that `Decoding` refuses, or a budget of less than one token.
    """
    decoding = Decoding(
        max_new_tokens=max_new_tokens, temperature=temperature, seed=seed, stop=tuple(stop)
    )

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            texts = generate(model, batch, decoding)
        return [
            {"completions": [completion_row(model, tokenized, text)]}
            for tokenized, text in zip(batch.prompts, texts, strict=True)
        ]

    parameters = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "seed": seed,
        "stop": list(stop),
    }
    return GenerationMeasurement(
        model,
        "generate",
        parameters,
        {"completions": SCHEMAS["completions"]},
        token_budget(model, batch_tokens),
        measure_batch,
        max_new_tokens,
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
