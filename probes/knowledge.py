"""Which facts a model knows: its greedy completion names the expected answer (Section 4.1)."""

from interp.errors import UserError
from interp.measurements.core import Measurement, PromptRows, explained
from interp.measurements.generation import GenerationMeasurement, generate
from interp.measurements.specs import Generate
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row
from interp_probes.specs import Knowledge

COMPLETION_TOKENS = 32
"""Most tokens of a completion."""


def knowledge(model: Model, spec: Knowledge, *, batch_tokens: int | None = None) -> Measurement:
    """Measure which of the facts from `load_facts` a model knows.

    Raises:
        UserError: the budget is less than one token; in measuring, logits are not finite.
    """
    texts_of = Generate(max_new_tokens=COMPLETION_TOKENS)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            texts = generate(model, batch, texts_of)
        if not all(text.finite for text in texts):
            prompts = [tokenized.prompt for tokenized in batch.prompts]
            raise UserError(explained(NOT_FINITE, model, prompts))
        return [
            {"knowledge": [_row(model, tokenized.prompt, text.text)]}
            for tokenized, text in zip(batch.prompts, texts, strict=True)
        ]

    budget = token_budget(model, batch_tokens)
    return GenerationMeasurement(
        model,
        spec,
        budget,
        measure_batch,
        new_tokens=COMPLETION_TOKENS,
    )


def _row(model: Model, prompt: Prompt, completion: str) -> Row:
    matched = prompt.answer.judge(completion).answer
    return {
        "model": model.name,
        "prompt_id": prompt.id,
        "completion": completion,
        "known": bool(matched),
        "matched": matched,
    }
