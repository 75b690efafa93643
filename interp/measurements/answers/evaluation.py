"""Answers of a model: the measurements for the specs `Evaluate` and `SoftScore`."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from interp.console import echo
from interp.errors import ModelError
from interp.measurements.specs import Evaluate, SoftScore
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.models.unembedding import final_states
from interp.prompts import changes
from interp.prompts.prompt import Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_error, answer_tables, predict
from interp.scoring.likelihood import perplexities
from interp.scoring.shared_prefix import answer_batches, predict_batch
from interp.tables import Row


@dataclass(frozen=True)
class AnswerMeasurement(Measurement):
    """A measurement that needs only answers, so tokens shared by several prompts can be run once.

    Measurements of soft scores require the final state of every token, and attributions require a
    gradient, so they run every prompt in full.
    """

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Batches of prompts with a shared beginning if this saves enough, or of similar length."""
        return answer_batches(self.model, prompts, batch_tokens=self.budget.tokens)


def evaluation(model: Model, spec: Evaluate, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers: probabilities of the options, prediction, correctness.

    A model that thinks is not measured without premises, and a line says so: demonstrations ask
    for it too (`Evaluate.fitted`).

    Raises:
        ModelError: other changed prompts are asked for, but the model thinks before it answers, so
            its thoughts would still be about the unchanged prompts.
    """
    if model.chat.thinks and spec.without_premises:
        echo(f"{model.name} thinks before it answers, so it is not measured without premises")
        spec = spec.model_copy(update={"without_premises": False})
    if spec.changes_prompts and model.chat.thinks:
        raise ModelError(
            f"{model.name} thinks before it answers, so its thoughts would still be about the "
            "unchanged prompts; turn thinking off, or measure no changed prompts"
        )
    answer_tokens = AnswerTokenizer(model, spec.answers, normalize=spec.normalize)
    budget = token_budget(model, batch_tokens)
    option_rows: dict[Hashable, list[Row]] = {}

    def rows_of(batch: Batch) -> list[PromptRows]:
        return [
            rows
            for part, predictions in predict_batch(model, batch, answer_tokens)
            for rows in answer_tables(model, part, predictions)
        ]

    def changed_rows(prompt: Prompt) -> list[Row]:
        """The rows in changed_options, of changed prompts that were all read before."""
        key: Row = {"model": model.name, "prompt_id": prompt.id}
        names = ("option", "probability", "relative_probability")
        return [
            {**key, "change": change.kind, "what": change.what, **{n: row[n] for n in names}}
            for change in _changes(prompt, spec)
            for row in option_rows[_content(change.prompt)]
        ]

    @torch.inference_mode()
    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            measured = rows_of(batch)
            if not spec.changes_prompts:
                return measured
            prompts = [tokenized.prompt for tokenized in batch.prompts]
            # Many prompts are the same without content, so each is read once.
            changed = {
                _content(edit.prompt): edit.prompt for p in prompts for edit in _changes(p, spec)
            }
            new = [content for content in changed if content not in option_rows]
            read = tokenize(model, [changed[content] for content in new])
            for places, part in answer_batches(model, read, batch_tokens=budget.tokens):
                for place, rows in zip(places, rows_of(part), strict=True):
                    option_rows[new[place]] = rows.get("option_probabilities", [])
        return [
            {**rows, "changed_options": changed_rows(prompt)}
            for rows, prompt in zip(measured, prompts, strict=True)
        ]

    return AnswerMeasurement(model, spec, budget, measure_batch, partial(answer_error, model))


def _changes(prompt: Prompt, spec: Evaluate) -> Iterator[changes.Change]:
    if spec.content_free:
        yield from changes.content_free(prompt)
    if spec.without_segments:
        yield from changes.without_segments(prompt)
    if spec.reads_no_premises:
        yield from changes.without_premises(prompt)
    if spec.swap_options:
        yield from changes.swapped_options(prompt)


def _content(prompt: Prompt) -> Hashable:
    """All that a model reads of a prompt, and the options that are read from it."""
    return prompt.content, prompt.messages, prompt.answer.options


def soft_scores(model: Model, spec: SoftScore, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, soft accuracy and the perplexity of the prompt in one forward pass.

    Soft accuracy is the correct option's share of the total probability of all options, or null if
    the prompt offers no choice (Wang and Shi 2025, Section 4.1 and formula 5).
    """
    answer_tokens = AnswerTokenizer(model, spec.answers)

    @torch.inference_mode()
    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            with final_states(model) as states:
                predictions = predict(model, batch, answer_tokens)
            perplexity = perplexities(model, batch, states[0], last_logits=predictions.logits)
            tables = answer_tables(model, batch, predictions)
        for rows, tokenized, value in zip(tables, batch.prompts, perplexity, strict=True):
            (answer,) = rows["answers"]
            row: Row = {key: answer[key] for key in ("model", "prompt_id", "error")}
            if not answer["error"]:
                options = rows["option_probabilities"]
                shares = {option["option"]: option["relative_probability"] for option in options}
                row |= {
                    "soft_accuracy": shares[tokenized.prompt.answer.gold],
                    "perplexity": value,
                    "prompt_tokens": len(tokenized),
                }
            rows["soft_answers"] = [row]
        return tables

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        undefined: Row = {"model": model.name, "prompt_id": prompt.id, "error": error}
        return {**answer_error(model, prompt, error), "soft_answers": [undefined]}

    return Measurement(model, spec, token_budget(model, batch_tokens), measure_batch, error_rows)
