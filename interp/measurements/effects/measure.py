"""Effects of segments on a model's answer: the measurement for the spec `Effects`.

Each donor replaces each subset of the k segments in turn. Of the resulting 2^k prompts, identical
ones are run only once. The value v(S) of the prompt that keeps the segments in S is the logit of
the model's own answer to the intact prompt minus the logit of another answer. Shapley values,
leave-one-out effects and interactions are computed for each donor; their mean and standard
deviation over donors are stored, together with the value of every coalition S.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from interp.attribution.attributor import build
from interp.attribution.games import (
    MOST_SEGMENTS,
    Coalitions,
    Values,
    interactions,
    leave_one_out,
    shapley_values,
)
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
            found = read_all(
                model, tokenize(model, prompts), answer_tokens, budget, read=option_logits
            )
            return list(found)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        games = [list(_games(tokenized.prompt)) for tokenized in batch.prompts]
        mixed = [_distinct(own) for own in games]
        prompts = [prompt for own in mixed for prompt in own.values()]
        logits = iter(read(prompts))
        rows: list[PromptRows] = []
        for tokenized, own, texts in zip(batch.prompts, games, mixed, strict=True):
            values_of = dict(zip(texts, logits, strict=False))
            key: Row = {"model": model.name, "prompt_id": tokenized.prompt.id}
            whole = answer_tokens(tokenized).whole
            tables: PromptRows = {"segment_effects": [], "coalition_values": []}
            if methods:
                tables["context_scores"] = []
            for game in own:
                answers = _compared(game.prompt, values_of[game.prompt.content])
                values = _values(game, values_of, answers)
                effects = _effect_rows(game, values, answers, spec.donors)
                tables["segment_effects"] += [{**key, **row, "whole": whole} for row in effects]
                tables["coalition_values"] += [
                    {**key, **row} for row in _coalition_rows(game, values)
                ]
                if methods and game.donors[0].kind == "instance" and np.isfinite(values).all():
                    means = values.mean(0)
                    tables["context_scores"] += [
                        {**key, "method": method, "segment": segment, "score": score}
                        for method, segment, score in scores_of(
                            methods, tokenized.prompt.id, game.segments, means
                        )
                    ]
            rows.append(tables)
        return rows

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        row: Row = {"model": model.name, "prompt_id": prompt.id, "error": error}
        return {"segment_effects": [row]}

    return Measurement(model, spec, budget, measure_batch, error_rows, cost=_tokens_read)


def _tokens_read(tokenized: TokenizedPrompt) -> float:
    """The tokens of all mixtures, of which there is one for each donor and coalition."""
    segments = [len(donor.segments) for donor in tokenized.prompt.donors]
    mixtures = sum(2 ** min(count, MOST_SEGMENTS) for count in segments)
    return float(len(tokenized) * max(1, mixtures))


def _games(prompt: Prompt) -> Iterator[Coalitions]:
    """One game with the donors from other instances, and one with any counterpart."""
    check_choice(prompt)
    yield Coalitions(prompt, donors_of(prompt, "instance"))
    counterparts = donors_of(prompt, "counterpart")
    if counterparts:
        yield Coalitions(prompt, counterparts)


def check_choice(prompt: Prompt) -> None:
    """Refuse a prompt without two answers to compare."""
    if len(prompt.answer.options) < 2:
        raise UserError(
            f"prompt {prompt.id} requires {prompt.answer.needs}, so there are no two answers to "
            "compare; use prompts that offer a choice"
        )


def _distinct(games: Sequence[Coalitions]) -> dict[Content, Prompt]:
    """The distinct prompts of games, by content; without segments, since only answers are read."""
    mixtures = {p.content: p for game in games for row in game.prompts for p in row}
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
    own, other, *_ = sorted(names, key=lambda name: -logits[name])
    return own, other


def _values(game: Coalitions, read: Mapping[Content, Logits], answers: tuple[str, str]) -> Values:
    """The value of each coalition, for each donor."""
    own, other = answers
    return np.array(
        [[read[p.content][own] - read[p.content][other] for p in row] for row in game.prompts],
        dtype=np.float64,
    )


def _coalition_rows(game: Coalitions, values: Values) -> Iterator[Row]:
    """One row per coalition; no rows if a value is not finite."""
    if np.isfinite(values).all():
        for coalition, by_donor in enumerate(values.T):
            yield {
                "donor_kind": game.donors[0].kind,
                "segments": list(game.segments),
                "coalition": coalition,
                "values": by_donor.tolist(),
            }


def _effect_rows(
    game: Coalitions, values: Values, answers: tuple[str, str], wanted_donors: int
) -> Iterator[Row]:
    """One row per segment, and one row per pair of segments."""
    shared: Row = {
        "donor_kind": game.donors[0].kind,
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
    shapley, left_out = shapley_values(values), leave_one_out(values)
    for player, name in enumerate(names):
        intact = game.prompt.segment_text(name)
        same = all(donor.segments[name] == intact for donor in game.donors)
        yield {
            **shared,
            "segment": name,
            **_over_donors("shapley", shapley[:, player]),
            **_over_donors("leave_one_out", left_out[:, player]),
            "note": "; ".join([*([UNCHANGED] if same else []), *few_donors]),
        }
    for (one, other), together in interactions(values).items():
        yield {
            **shared,
            "segment": names[one],
            "other_segment": names[other],
            **_over_donors("interaction", together),
            "note": "; ".join(few_donors),
        }


def _over_donors(column: str, effects: Values) -> Row:
    """The mean and, for two or more donors, the sample standard deviation."""
    spread = float(effects.std(ddof=1)) if len(effects) > 1 else None
    return {column: float(math.fsum(effects) / len(effects)), f"{column}_sd": spread}


COLUMNS = ["model", "prompt_id", "method", "segment", "score"]


@dataclass(frozen=True)
class _Measured:
    """The values of all coalitions of a prompt's segments."""

    segments: tuple[str, ...]
    known: Values

    def values(self, coalitions: Sequence[int] | None = None) -> Values:
        """The values of the given coalitions (by default, of all)."""
        return self.known if coalitions is None else self.known[list(coalitions)]


@dataclass(frozen=True)
class _Prompt:
    seed: str
    game: _Measured


def by_coalitions(methods: Sequence[str]) -> Mapping[str, Any]:
    """Methods of context attribution, by label: each takes a `Played` prompt.

    Raises:
        UserError: a method is unknown, or reads more of a model than values of coalitions.
    """
    for name in methods:
        check_by_coalitions(name)
    return {name: build(name, None) for name in methods}


def scores_of(
    methods: Mapping[str, Any], prompt_id: str, segments: Sequence[str], values: Values
) -> Iterator[tuple[str, str, float]]:
    """The score of each segment of a prompt: method, segment and score in logits.

    `prompt_id` seeds methods that draw coalitions; `values` are means over donors (coalition,).
    """
    prompt = _Prompt(prompt_id, _Measured(tuple(segments), values))
    for name, method in methods.items():
        for segment, score in method.attribute(prompt).scores.items():
            yield name, segment, score


def context_scores(parts: Iterable[pd.DataFrame], methods: Sequence[str]) -> pd.DataFrame:
    """Scores of segments: one row per model, prompt, method and segment (`COLUMNS`)."""
    built = by_coalitions(methods)
    found = []
    for part in parts:
        for of, rows in grouped(part[part["donor_kind"] == "instance"], ["model", "prompt_id"]):
            ordered = rows.sort_values("coalition")
            means = np.array(ordered["values"].tolist(), dtype=np.float64).mean(1)
            key = str(of["model"]), str(of["prompt_id"])
            found += [
                (*key, *own)
                for own in scores_of(built, key[1], list(ordered["segments"].iloc[0]), means)
            ]
    return pd.DataFrame(found, columns=COLUMNS)
