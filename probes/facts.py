"""Which facts a model knows: how likely it begins to state each, and whether it completes it."""

import math

import torch

from interp.errors import UserError
from interp.measurements.core import Measurement, PromptRows, explained
from interp.measurements.generation import GenerationMeasurement
from interp.models.architectures import CAUSAL
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import NOT_FINITE, predict
from interp.scoring.generation import Decoding, generate
from interp.scoring.likelihood import continuation_log_probabilities
from interp.tables import Row
from interp_probes.specs import Familiarity, Knowledge


def familiarity(model: Model, spec: Familiarity, *, batch_tokens: int | None = None) -> Measurement:
    """Measure P(first token of the answer | completion prompt) for facts.

    The answer is the data set's own name; aliases do not count, as in the paper. If it may be
    written with or without a leading space, the probabilities of both first tokens are added
    (`AnswerTokenizer`), and the table names the more likely one. The same holds for the whole name,
    which distinguishes answers that begin alike. The prompts are those of
    `interp.prompts.systems.load_facts`.

    Raises:
        UserError: the budget is less than one token. When it measures: logits are not finite.
    """
    answer_tokens = AnswerTokenizer(model)
    budget = token_budget(model, batch_tokens)

    @torch.inference_mode()
    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            predictions = predict(model, batch, answer_tokens)
            if not predictions.logits.isfinite().all():
                prompts = [tokenized.prompt for tokenized in batch.prompts]
                raise UserError(explained(NOT_FINITE, model, prompts))
            whole = _whole_names(model, batch, answer_tokens, budget.tokens)
        probabilities = predictions.logits.double().softmax(-1).cpu()
        own = [
            tokens.of[prompt.prompt.answer.gold]
            for prompt, tokens in zip(batch.prompts, predictions.answers, strict=True)
        ]
        first = [tokens[0] for tokens in own]
        names = model.tokenizer.convert_ids_to_tokens(first)
        return [
            {
                "familiarity": [
                    {
                        "model": model.name,
                        "prompt_id": tokenized.prompt.id,
                        "familiarity": float(probabilities[row, list(tokens)].sum()),
                        "whole_name": whole[row],
                        "first_token": names[row],
                        "first_token_id": first[row],
                        "token_ids": list(tokens),
                    }
                ]
            }
            for row, (tokenized, tokens) in enumerate(zip(batch.prompts, own, strict=True))
        ]

    return Measurement(model, spec, budget, measure_batch)


def _whole_names(
    model: Model, batch: Batch, answer_tokens: AnswerTokenizer, batch_tokens: int
) -> list[float]:
    """The probability of each answer's name, in all ways that it may be written."""
    if model.kind is not CAUSAL:
        return [math.nan] * len(batch.prompts)
    ways = [
        answer_tokens.written(tokenized.chat, tokenized.prompt.answer.gold)
        for tokenized in batch.prompts
    ]
    rows = [row for row, written in enumerate(ways) for _ in written]
    found = continuation_log_probabilities(
        model,
        [batch.prompts[row] for row in rows],
        [way for written in ways for way in written],
        batch_tokens=batch_tokens,
    )
    total = torch.zeros(len(ways), dtype=torch.float64)
    return total.index_add(0, torch.tensor(rows), found.exp()).tolist()


COMPLETION_TOKENS = 32
"""Most tokens of a completion."""


def knowledge(model: Model, spec: Knowledge, *, batch_tokens: int | None = None) -> Measurement:
    """Measure which of the facts from `load_facts` a model knows.

    Raises:
        UserError: the budget is less than one token; in measuring, logits are not finite.
    """
    decoding = Decoding(max_new_tokens=COMPLETION_TOKENS)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            texts = generate(model, batch, decoding)
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
