"""The measurement of generated text, and of the thoughts that precede it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from interp.errors import UserError
from interp.measurements.answers.decoding import Generated, decoded, generate
from interp.measurements.specs import Generate
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.thoughts import cut_thought, marks_of
from interp.reading.tokens import Batch, TokenizedPrompt, batches, tokenize
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row


@dataclass(frozen=True)
class GenerationMeasurement(Measurement):
    """A measurement whose batches leave room for generated texts."""

    new_tokens: int = 0
    """Maximum number of tokens generated after each prompt."""

    @cached_property
    def tables(self) -> Mapping[str, pa.Schema]:
        """The schemas of the filled tables, with `thoughts` only for a model that thinks."""
        filled = self.spec.filled()
        return {n: s for n, s in filled.items() if n != "thoughts" or self.model.chat.thinks}

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Batches of prompts of similar length, with room for generated texts of full length."""
        return batches(
            self.model, prompts, batch_tokens=self.budget.tokens, new_tokens=self.new_tokens
        )

    def read(self, prompt: Prompt) -> Prompt:
        """The prompt without a thought, because thoughts are yet to be generated."""
        return prompt


def generation(model: Model, spec: Generate, *, batch_tokens: int | None = None) -> Measurement:
    """Measure the text that a model generates after each prompt, with its thoughts if it thinks.

    Raises:
        UserError: an option requires that the model thinks, or that it does not.
    """
    _check_thinking(model, spec)
    budget = token_budget(model, batch_tokens)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            if model.chat.thinks:
                return _thinking(model, batch, spec, budget)
            texts = generate(model, batch, spec)
        return [
            {"completions": [_row(model, tokenized, text)]}
            if text.finite
            else error_rows(tokenized.prompt, NOT_FINITE)
            for tokenized, text in zip(batch.prompts, texts, strict=True)
        ]

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        row: Row = {"model": model.name, "prompt_id": prompt.id, "answer": "", "correct": None}
        row["error"] = error
        return {"completions": [row], **({"thoughts": [row]} if model.chat.thinks else {})}

    return GenerationMeasurement(
        model, spec, budget, measure_batch, error_rows, new_tokens=spec.max_new_tokens
    )


def _check_thinking(model: Model, spec: Generate) -> None:
    if model.chat.thinks and spec.stop:
        raise UserError(
            f"--stop would also end thoughts at {', '.join(map(repr, spec.stop))}; omit --stop, or "
            "turn thinking off"
        )
    if not model.chat.thinks and (spec.draws > 1 or spec.force_end):
        option = "several draws" if spec.draws > 1 else "forced ends"
        raise UserError(
            f"{option} require thoughts, but {model.name} generates none; turn thinking on"
        )


def _thinking(model: Model, batch: Batch, spec: Generate, budget: TokenBudget) -> list[PromptRows]:
    """The thoughts on each prompt of a batch, and the answer after the first thought."""
    rows: list[PromptRows] = [{"completions": [], "thoughts": []} for _ in batch.prompts]
    for draw in range(spec.draws):
        seeded = f" {draw}" if draw else ""
        texts = generate(model, batch, spec, draw=seeded)
        cuts = [
            cut_thought(model, tokenized, text.token_ids)
            for tokenized, text in zip(batch.prompts, texts, strict=True)
        ]
        open_ends = [
            row
            for row, (cut, text) in enumerate(zip(cuts, texts, strict=True))
            if spec.force_end
            and text.finite
            and text.finished == "length"
            and not cut.thought.ended
        ]
        end = marks_of(model).thought("").after
        thoughts = {row: replace(cuts[row].thought, after=end, ended=True) for row in open_ends}
        prompts = [replace(batch.prompts[row].prompt, thought=thoughts[row]) for row in open_ends]
        answers = dict(zip(open_ends, _answers(model, prompts, spec, budget, seeded), strict=True))
        for row, (tokenized, text, cut) in enumerate(zip(batch.prompts, texts, cuts, strict=True)):
            key: Row = {"model": model.name, "prompt_id": tokenized.prompt.id}
            answer = answers.get(row) or Generated(
                cut.answer_ids, decoded(model, [*cut.answer_ids]).strip(), text.finished
            )
            thought = thoughts.get(row, cut.thought)
            judged = _judged(tokenized.prompt, answer)
            numbers: Row = {
                "seed": spec.sampling_seed,
                "before": thought.before,
                "sentences": list(thought.sentences),
                "after": thought.after,
                "tokens": len(cut.token_ids),
                "token_ids": list(cut.token_ids),
                "finished": "marker" if cut.thought.ended else text.finished,
                "forced": row in thoughts,
                "same_tokens": cut.same_tokens,
                **judged,
            }
            failed: Row = {"answer": "", "correct": None, "error": NOT_FINITE}
            finite = text.finite and answer.finite
            rows[row]["thoughts"].append({**key, "draw": draw, **(numbers if finite else failed)})
            if draw == 0:
                tokens = len(text.token_ids)
                shown = {**judged, "tokens": tokens, "finished": answer.finished}
                rows[row]["completions"].append({**key, **(shown if finite else failed)})
    return rows


def _answers(
    model: Model, prompts: Sequence[Prompt], spec: Generate, budget: TokenBudget, draw: str
) -> list[Generated]:
    """The answers, of 64 tokens at most, after thoughts whose end was forced."""
    short = spec.model_copy(update={"max_new_tokens": min(64, spec.max_new_tokens)})
    answers: dict[int, Generated] = {}
    room = {"batch_tokens": budget.tokens, "new_tokens": short.max_new_tokens}
    for places, batch in batches(model, tokenize(model, prompts), **room):
        texts = generate(model, batch, short, draw=f"{draw} forced")
        answers |= zip(places, texts, strict=True)
    return [answers[place] for place in range(len(prompts))]


def _row(model: Model, tokenized: TokenizedPrompt, text: Generated) -> Row:
    key: Row = {"model": model.name, "prompt_id": tokenized.prompt.id}
    shown: Row = {"tokens": len(text.token_ids), "finished": text.finished}
    return {**key, **shown, **_judged(tokenized.prompt, text)}


def _judged(prompt: Prompt, text: Generated) -> Row:
    judgement = prompt.answer.judge(text.text)
    return {"completion": text.text, **judgement._asdict(), "error": ""}
