"""The facts that a model completes, measured by probability and by greedy completion."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import torch

from interp import Generate, Model, Prompt, UserError
from interp.extend import Measurement, PromptRows, measuring
from interp_probes.facts.wordings import before_other_facts, sentence, wording
from interp_probes.specs import Familiarity, Knowledge


def familiarity(model: Model, spec: Familiarity, *, batch_tokens: int | None = None) -> Measurement:
    """Measure P(first token of the answer | completion prompt) for facts (Section 6).

    As in the paper, only the name given in the data set counts as the answer, not its aliases.
    Spellings with and without a leading space are added (`AnswerTokenizer`), of first tokens and of
    whole names, which alone distinguish answers that begin alike; the table lists the more likely
    token. A model that begins its reply by repeating the sentence gives the answer's first token a
    low probability whether or not it knows the fact, so the probability after this is measured too.

    Raises:
        UserError: the budget is less than one token; during measurement, logits are not finite.
    """
    answer_tokens = measuring.AnswerTokenizer(model)
    budget = measuring.token_budget(model, batch_tokens)

    @torch.inference_mode()
    def measure_batch(batch: measuring.Batch) -> list[PromptRows]:
        with model.measuring():
            predictions = measuring.predict(model, batch, answer_tokens)
            _require_finite(model, batch, finite=bool(predictions.logits.isfinite().all()))
            whole = _whole_names(model, batch, answer_tokens, budget.tokens)
            echoes: list[tuple[int, ...]] = [()] * len(batch.prompts)
            if model.kind is measuring.CAUSAL:
                sentences = [(asked.chat, sentence(asked.prompt)) for asked in batch.prompts]
                echoes = [next(iter(answer_tokens.written(*pair)), ()) for pair in sentences]
            after = _after_echo(model, batch, echoes, answer_tokens, budget.tokens)
        probabilities = predictions.logits.double().softmax(-1).cpu()
        rows = []
        for row, tokenized in enumerate(batch.prompts):
            tokens = predictions.answers[row].of[tokenized.prompt.answer.gold]
            likely, answer = int(probabilities[row].argmax()), probabilities[row, list(tokens)]
            fact_row: measuring.Row = {
                **_identified(model, tokenized.prompt),
                "familiarity": float(answer.sum()),
                "rank": 1 + int((probabilities[row] > answer.max()).sum()),
                "leading": measuring.token_texts(model.tokenizer, [likely])[0],
                "whole_name": whole[row],
                "after_echo": after[row],
                "echoes": _begins(likely, echoes[row], tokens),
                "first_token": measuring.token_texts(model.tokenizer, tokens[:1])[0],
                "first_token_id": tokens[0],
                "token_ids": list(tokens),
            }
            rows.append({"familiarity": [fact_row]})
        return rows

    return Measurement(model, spec, budget, measure_batch)


def _begins(likely: int, echo: tuple[int, ...], answers: Collection[int]) -> bool:
    """Whether a token begins the echo, and not an answer."""
    return likely in echo[:1] and likely not in answers


def _after_echo(
    model: Model,
    batch: measuring.Batch,
    echoes: Sequence[tuple[int, ...]],
    answer_tokens: measuring.AnswerTokenizer,
    batch_tokens: int,
) -> list[float]:
    """The probability of each answer's first token after the echo; NaN if tokens span its end."""
    probabilities, after_echo = [math.nan] * len(batch.prompts), {}
    for row, (tokenized, echo) in enumerate(zip(batch.prompts, echoes, strict=True)):
        completed = f"{sentence(tokenized.prompt)} {tokenized.prompt.answer.gold}"
        tokens = next(iter(answer_tokens.written(tokenized.chat, completed)), ()) if echo else ()
        if len(tokens) > len(echo) and tokens[: len(echo)] == echo:
            after_echo[row] = (
                replace(tokenized, token_ids=tokenized.token_ids + echo),
                tokens[len(echo) : len(echo) + 1],
            )
    if after_echo:
        prompts, firsts = zip(*after_echo.values(), strict=True)
        after = measuring.continuation_log_probabilities(
            model, prompts, firsts, batch_tokens=batch_tokens
        )
        for row, probability in zip(after_echo, after.exp().tolist(), strict=True):
            probabilities[row] = probability
    return probabilities


def _whole_names(
    model: Model,
    batch: measuring.Batch,
    answer_tokens: measuring.AnswerTokenizer,
    batch_tokens: int,
) -> list[float]:
    """The probability of each answer, summed over the spellings of its name."""
    if model.kind is not measuring.CAUSAL:
        return [math.nan] * len(batch.prompts)
    ways = [answer_tokens.written(asked.chat, asked.prompt.answer.gold) for asked in batch.prompts]
    rows = [row for row, written in enumerate(ways) for _ in written]
    log_probabilities = measuring.continuation_log_probabilities(
        model,
        [batch.prompts[row] for row in rows],
        [way for written in ways for way in written],
        batch_tokens=batch_tokens,
    )
    total = torch.zeros(len(ways), dtype=torch.float64)
    return total.index_add(0, torch.tensor(rows), log_probabilities.exp()).tolist()


COMPLETION_TOKENS = 32
"""Largest number of tokens in a completion."""


def knowledge(model: Model, spec: Knowledge, *, batch_tokens: int | None = None) -> Measurement:
    """Measure whether the greedy completion of each fact names the answer (Section 4.1).

    Raises what `familiarity` raises.
    """
    texts_of = Generate(max_new_tokens=COMPLETION_TOKENS)

    def measure_batch(batch: measuring.Batch) -> list[PromptRows]:
        with model.measuring():
            texts = measuring.generate(model, batch, texts_of)
        _require_finite(model, batch, finite=all(text.finite for text in texts))
        rows = []
        for tokenized, text in zip(batch.prompts, texts, strict=True):
            said = before_other_facts(tokenized.prompt, text.text.strip())
            matched = tokenized.prompt.answer.judge(said).answer
            outcome = {"completion": text.text, "known": bool(matched), "matched": matched}
            rows.append({"knowledge": [{**_identified(model, tokenized.prompt), **outcome}]})
        return rows

    budget = measuring.token_budget(model, batch_tokens)
    return measuring.GenerationMeasurement(
        model, spec, budget, measure_batch, new_tokens=COMPLETION_TOKENS
    )


def _require_finite(model: Model, batch: measuring.Batch, *, finite: bool) -> None:
    if not finite:
        prompts = [tokenized.prompt for tokenized in batch.prompts]
        raise UserError(measuring.explained(measuring.NOT_FINITE, model, prompts))


def _identified(model: Model, prompt: Prompt) -> measuring.Row:
    ids = {"model": model.name, "prompt_id": prompt.id}
    return {**ids, "fact": prompt.pair_id, "wording": wording(prompt)}
