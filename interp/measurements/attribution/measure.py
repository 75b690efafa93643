"""Attributions of a model: the measurements for the specs `Attribute` and `Reinitialized`."""

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from interp.attribution.attributor import Attributor
from interp.attribution.method import Attribution, SegmentScores, TokenScores
from interp.measurements.specs import Attribute
from interp.measuring.core import Measurement, PromptRows, token_rows
from interp.models.load import reinitialized
from interp.models.model import Model
from interp.reading.tokens import Batch, TokenizedPrompt, token_segments
from interp.scoring.answers import NOT_FINITE, answer_error, answer_tables
from interp.tables import Row

Positions = dict[str, list[int]]
"""The tokens of each segment; segments are in the order of their first tokens."""


def attribution(model: Model, spec: Attribute, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, and each method's scores of segments and, if requested, of tokens.

    Raises:
        UserError: a method does not support the model.
    """
    attributor = Attributor(
        model,
        methods=spec.methods,
        target=spec.target,
        answers=spec.answers,
        batch_tokens=batch_tokens,
    )

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, attributions = attributor(batch)
        answers = answer_tables(model, batch, predictions)
        rows: list[PromptRows] = []
        for prompt, answer, by_method in zip(batch.prompts, answers, attributions, strict=True):
            segments = segment_score_rows(model, prompt, by_method, target=spec.target)
            rows.append({**answer, "segment_scores": segments})
            if spec.keep_tokens:
                tokens = token_score_rows(model, prompt, by_method, target=spec.target)
                rows[-1] |= {"tokens": token_rows(model, prompt), "token_scores": tokens}
        return rows

    errors = partial(answer_error, model)
    return Measurement(model, spec, attributor.budget, measure_batch, errors)


def reinitialized_attribution(
    model: Model, spec: Attribute, *, batch_tokens: int | None = None
) -> Measurement:
    """Measure attributions of the model's architecture with random weights."""
    return attribution(reinitialized(model), spec, batch_tokens=batch_tokens)


def segment_score_rows(
    model: Model, prompt: TokenizedPrompt, attributions: Mapping[str, Attribution], *, target: str
) -> list[Row]:
    """One row per method and segment of a prompt; text outside segments counts as "template".

    A method's rows contain no scores if any of its scores for the prompt is not finite.
    """
    positions: Positions = {}
    for position, segment in enumerate(token_segments(prompt)):
        positions.setdefault(segment, []).append(position)
    rows: list[Row] = []
    for method, attribution in attributions.items():
        shared: Row = {**_key(model, prompt, method, target), "error": NOT_FINITE}
        if math.isfinite(attribution.total):
            gap = attribution.completeness_gap
            shared |= {"total": attribution.total, "completeness_gap": gap, "error": ""}
        for segment, score, share in _sums(positions, attribution):
            row = {**shared, "segment": segment, "tokens": len(positions.get(segment, ()))}
            rows.append(row if row["error"] else {**row, "score": score, "share": share})
    return rows


def token_score_rows(
    model: Model, prompt: TokenizedPrompt, attributions: Mapping[str, Attribution], *, target: str
) -> list[Row]:
    """One row per method and token of a prompt, for methods that score tokens."""
    return [
        {**_key(model, prompt, method, target), "position": position, "score": score}
        for method, attribution in attributions.items()
        if isinstance(attribution, TokenScores)
        for position, score in enumerate(attribution.scores.tolist())
    ]


def _key(model: Model, prompt: TokenizedPrompt, method: str, target: str) -> Row:
    return {"model": model.name, "prompt_id": prompt.prompt.id, "method": method, "target": target}


def _sums(
    positions: Positions, attribution: Attribution
) -> Iterator[tuple[str, float, float | None]]:
    """Each segment's score and share of the absolute scores; no share if all scores are zero."""
    total = attribution.total
    if isinstance(attribution, SegmentScores):
        for segment, score in attribution.scores.items():
            yield segment, score, abs(score) / total if total else None
        return
    # Each share is rounded to fp32 before summation, so that tables are byte-identical to those of
    # earlier versions. If a score is not finite, there is no sum.
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.abs(attribution.scores) / attribution.scores.dtype.type(total)
        for segment, at in positions.items():
            score, share = (
                float(values[at].sum(dtype=np.float64)) for values in (attribution.scores, shares)
            )
            yield segment, score, share if total else None
