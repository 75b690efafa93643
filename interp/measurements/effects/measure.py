"""Effects of segments on a model's answer: the measurement for the spec `Effects`.

Each donor replaces each subset of the k segments in turn. Of the resulting 2^k prompts, identical
ones are run only once. The value v(S) of the prompt that keeps the segments in S is the logit of
the model's own answer to the intact prompt minus the logit of another answer. Shapley values,
leave-one-out effects and interactions are computed for each donor.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch

from interp.attribution import games
from interp.attribution.attributor import build
from interp.attribution.registry import check_by_coalitions
from interp.choices import UNCHANGED
from interp.errors import UserError
from interp.measurements.specs import Effects
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.prompts.mixing import donors_of
from interp.prompts.prompt import Content, Prompt
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import NOT_FINITE, Predictions, token_logits
from interp.scoring.served import Server
from interp.scoring.shared_prefix import read_all
from interp.statistics.summaries import grouped
from interp.tables import Row

Logits = Mapping[str, float]
"""The logit of each answer option: the log-sum-exp of those of its tokens or whole texts."""


def effects(model: Model, spec: Effects, *, batch_tokens: int | None = None) -> Measurement:
    """Measure the effects of each segment, and of each pair of segments, on the answer."""
    answer_tokens = AnswerTokenizer(model, spec.answers)
    budget = token_budget(model, batch_tokens)
    methods = by_coalitions(spec.context or ())
    server = None if spec.server is None else Server(spec.server, model)

    def read(prompts: list[Prompt]) -> Iterable[Logits]:
        if server is not None:
            return server.option_logits(tokenize(model, prompts), answer_tokens)
        with model.measuring():
            logits = read_all(
                model, tokenize(model, prompts), answer_tokens, budget, read=option_logits
            )
            return list(logits)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        played = [list(_games(tokenized.prompt)) for tokenized in batch.prompts]
        mixed = [_distinct(prompt_games) for prompt_games in played]
        prompts = [prompt for by_content in mixed for prompt in by_content.values()]
        logits = iter(read(prompts))
        rows: list[PromptRows] = []
        for tokenized, prompt_games, texts in zip(batch.prompts, played, mixed, strict=True):
            values_of = dict(zip(texts, logits, strict=False))
            key: Row = {"model": model.name, "prompt_id": tokenized.prompt.id}
            whole = answer_tokens(tokenized).whole
            tables: PromptRows = {"segment_effects": [], "coalition_values": []}
            if methods:
                tables["context_scores"] = []
            for game in prompt_games:
                answers = _compared(game.prompt, values_of[game.prompt.content])
                values = _values(game, values_of, answers)
                shared: Row = {**key, "donor_kind": game.donors[0].kind}
                effects = _effect_rows(game, values, answers, spec.donors)
                tables["segment_effects"] += [{**shared, **row, "whole": whole} for row in effects]
                if np.isfinite(values).all():
                    shared["segments"] = list(game.segments)
                    tables["coalition_values"] += [
                        {**shared, "coalition": coalition, "values": by_donor.tolist()}
                        for coalition, by_donor in enumerate(values.T)
                    ]
                if methods and game.donors[0].kind == "instance" and np.isfinite(values).all():
                    scores = scores_of(methods, key, game.segments, values.mean(0))
                    tables["context_scores"] += scores
            rows.append(tables)
        return rows

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        row: Row = {"model": model.name, "prompt_id": prompt.id, "error": error}
        return {"segment_effects": [row]}

    return Measurement(model, spec, budget, measure_batch, error_rows, cost=_tokens_read)


def _tokens_read(tokenized: TokenizedPrompt) -> float:
    """The tokens of all mixtures, of which there is one for each donor and coalition."""
    segments = [len(donor.segments) for donor in tokenized.prompt.donors]
    mixtures = sum(2 ** min(count, games.MOST_SEGMENTS) for count in segments)
    return float(len(tokenized) * max(1, mixtures))


def _games(prompt: Prompt) -> Iterator[games.Coalitions]:
    """One game with the donors from other instances, and one with any counterpart."""
    check_choice(prompt)
    yield games.Coalitions(prompt, donors_of(prompt, "instance"))
    if counterparts := donors_of(prompt, "counterpart"):
        yield games.Coalitions(prompt, counterparts)


def check_choice(prompt: Prompt) -> None:
    """Refuse a prompt without two answers to compare."""
    if len(prompt.answer.options) < 2:
        raise UserError(
            f"prompt {prompt.id} requires {prompt.answer.needs}, so there are no two answers to "
            "compare; use prompts that offer a choice"
        )


def _distinct(played: Sequence[games.Coalitions]) -> dict[Content, Prompt]:
    """The distinct prompts of games, by content; without segments, since only answers are read."""
    mixtures = {p.content: p for game in played for row in game.prompts for p in row}
    return {content: replace(p, segments={}, roles={}) for content, p in mixtures.items()}


def option_logits(predictions: Predictions) -> list[Logits]:
    """The logit of each option of each prompt, in fp64."""
    tokens = [tokens for answers in predictions.answers for tokens in answers.of.values()]
    values = token_logits(predictions.columns, [answers.tokens for answers in predictions.answers])
    starts = np.cumsum([0, *map(len, tokens[:-1])])
    with np.errstate(invalid="ignore"):  # non-finite values are reported as errors later
        logits = iter(np.logaddexp.reduceat(torch.cat(values).numpy(), starts).tolist())
    return [dict(zip(answers.of, logits, strict=False)) for answers in predictions.answers]


def _compared(prompt: Prompt, logits: Logits) -> tuple[str, str]:
    """The two answers to compare, the more probable first.

    They are the prompt's contrast if it has one, and otherwise the two most probable answers.
    """
    names = prompt.answer.contrast or tuple(logits)
    answer, other, *_ = sorted(names, key=lambda name: -logits[name])
    return answer, other


def _values(
    game: games.Coalitions, read: Mapping[Content, Logits], answers: tuple[str, str]
) -> games.Values:
    one, other = answers
    mixed = [[read[prompt.content] for prompt in row] for row in game.prompts]
    return np.array([[logits[one] - logits[other] for logits in row] for row in mixed], dtype=float)


def _effect_rows(
    game: games.Coalitions, values: games.Values, answers: tuple[str, str], wanted_donors: int
) -> Iterator[Row]:
    shared: Row = {
        "answer": answers[0],
        "other_answer": answers[1],
        "donors": len(game.donors),
        "donor_names": [donor.name for donor in game.donors],
        "error": "",
    }
    if not np.isfinite(values).all():
        yield {**shared, "error": NOT_FINITE}
        return
    shared |= {"value": float(values[0, -1]), "value_without": float(values[:, 0].mean())}
    few = len(game.donors) < wanted_donors and game.donors[0].kind == "instance"
    few_donors = [f"{len(game.donors)} of {wanted_donors} donors"] if few else []
    names = game.segments
    shapley, left_out = games.shapley_values(values), games.leave_one_out(values)
    for player, name in enumerate(names):
        intact = game.prompt.segment_text(name)
        same = all(donor.segments[name] == intact for donor in game.donors)
        note = "; ".join([*([UNCHANGED] if same else []), *few_donors])
        numbers = _over_donors("shapley", shapley[:, player])
        numbers |= _over_donors("leave_one_out", left_out[:, player])
        yield {**shared, "segment": name, **numbers, "note": note}
    for (one, other), together in games.interactions(values).items():
        pair = {"segment": names[one], "other_segment": names[other]}
        numbers = _over_donors("interaction", together)
        yield {**shared, **pair, **numbers, "note": "; ".join(few_donors)}


def _over_donors(column: str, effects: games.Values) -> Row:
    """The mean and, for two or more donors, the sample standard deviation."""
    spread = float(effects.std(ddof=1)) if len(effects) > 1 else None
    return {column: float(math.fsum(effects) / len(effects)), f"{column}_sd": spread}


COLUMNS = ["model", "prompt_id", "method", "segment", "score"]


@dataclass(frozen=True)
class _Measured:
    """The values of all coalitions of a prompt's segments."""

    segments: tuple[str, ...]
    known: games.Values

    def values(self, coalitions: Sequence[int] | None = None) -> games.Values:
        return self.known if coalitions is None else self.known[list(coalitions)]


def by_coalitions(methods: Sequence[str]) -> Mapping[str, Any]:
    """Methods of context attribution, by label: each takes a `Played` prompt.

    Raises:
        UserError: a method is unknown, or reads more of a model than values of coalitions.
    """
    for name in methods:
        check_by_coalitions(name)
    return {name: build(name, None) for name in methods}


def scores_of(
    methods: Mapping[str, Any], key: Row, segments: Sequence[str], values: games.Values
) -> Iterator[Row]:
    """The score of each segment of a prompt (`COLUMNS`), in logits.

    The id of the prompt seeds methods that draw coalitions; `values` are means over donors
    (coalition,).
    """
    prompt = SimpleNamespace(seed=key["prompt_id"], game=_Measured(tuple(segments), values))
    for name, method in methods.items():
        for segment, score in method.attribute(prompt).scores.items():
            yield {**key, "method": name, "segment": segment, "score": score}


def context_scores(parts: Iterable[pd.DataFrame], methods: Sequence[str]) -> pd.DataFrame:
    """Scores of segments: one row per model, prompt, method and segment (`COLUMNS`)."""
    built = by_coalitions(methods)
    scores: list[Row] = []
    for part in parts:
        for key, rows in grouped(part[part["donor_kind"] == "instance"], ["model", "prompt_id"]):
            ordered = rows.sort_values("coalition")
            means = np.array(ordered["values"].tolist(), dtype=np.float64).mean(1)
            scores += scores_of(built, key, list(ordered["segments"].iloc[0]), means)
    return pd.DataFrame(scores, columns=COLUMNS)
