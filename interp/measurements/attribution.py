"""Attributions of a model: the measurements of `Attribute` and `Reinitialized`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from interp.attribution.attributor import Attributor
from interp.attribution.method import Attribution, SegmentScores, TokenScores
from interp.measurements.core import Measurement, PromptRows
from interp.measurements.specs import Attribute
from interp.models.load import reinitialized
from interp.models.model import Model
from interp.reading.tokens import Batch, TokenizedPrompt, token_roles, token_segments
from interp.scoring.answers import NOT_FINITE, Predictions, answer_error, answer_tables
from interp.tables import Row

Positions = dict[str, list[int]]
"""Each segment's tokens; segments are in the order of their first tokens."""


def attribution(model: Model, spec: Attribute, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers and, by each method, the scores of segments and, if requested, of tokens.

    Raises:
        UserError: a method cannot be used on the model.
    """
    attribute = Attributor(
        model, methods=spec.methods, target=spec.target, batch_tokens=batch_tokens
    )

    def measure_batch(batch: Batch) -> list[PromptRows]:
        return attribution_rows(model, spec, batch, *attribute(batch))

    errors = partial(answer_error, model)
    return Measurement(model, spec, attribute.budget, measure_batch, errors)


def reinitialized_attribution(
    model: Model, spec: Attribute, *, batch_tokens: int | None = None
) -> Measurement:
    """Measure the same of the model's architecture with random weights."""
    return attribution(reinitialized(model), spec, batch_tokens=batch_tokens)


def attribution_rows(
    model: Model,
    spec: Attribute,
    batch: Batch,
    predictions: Predictions,
    attributions: Sequence[Mapping[str, Attribution]],
) -> list[PromptRows]:
    """The rows of each prompt in a batch, from its answers and the scores of each method."""
    answers = answer_tables(model, batch, predictions)
    rows: list[PromptRows] = []
    for prompt, answer, found in zip(batch.prompts, answers, attributions, strict=True):
        segments = segment_score_rows(model, prompt, found, target=spec.target)
        rows.append({**answer, "segment_scores": segments})
        if spec.keep_tokens:
            tokens = token_score_rows(model, prompt, found, target=spec.target)
            rows[-1] |= {"tokens": token_rows(model, prompt), "token_scores": tokens}
    return rows


def token_rows(model: Model, prompt: TokenizedPrompt) -> list[Row]:
    """One row per token of a prompt."""
    texts = model.tokenizer.convert_ids_to_tokens(list(prompt.token_ids))
    labels = zip(texts, token_segments(prompt), token_roles(prompt), strict=True)
    return [
        {
            "model": model.name,
            "prompt_id": prompt.prompt.id,
            "position": position,
            "token": text,
            "segment": segment,
            "role": role,
        }
        for position, (text, segment, role) in enumerate(labels)
    ]


def segment_score_rows(
    model: Model, prompt: TokenizedPrompt, found: Mapping[str, Attribution], *, target: str
) -> list[Row]:
    """One row per method and segment of a prompt, including "template"."""
    positions: Positions = {}
    for position, segment in enumerate(token_segments(prompt)):
        positions.setdefault(segment, []).append(position)
    return [
        {**_key(model, prompt, method, target), **row}
        for method, attribution in found.items()
        for row in _segments(positions, attribution)
    ]


def token_score_rows(
    model: Model, prompt: TokenizedPrompt, found: Mapping[str, Attribution], *, target: str
) -> list[Row]:
    """One row per method and token of a prompt, for methods that score tokens."""
    return [
        {**_key(model, prompt, method, target), "position": position, "score": score}
        for method, attribution in found.items()
        if isinstance(attribution, TokenScores)
        for position, score in enumerate(attribution.scores.tolist())
    ]


def _key(model: Model, prompt: TokenizedPrompt, method: str, target: str) -> Row:
    return {
        "model": model.name,
        "prompt_id": prompt.prompt.id,
        "method": method,
        "target": target,
    }


def _segments(positions: Positions, attribution: Attribution) -> Iterator[Row]:
    """One row per segment; without numbers if any score of the prompt is not finite."""
    for segment, score, share in _sums(positions, attribution):
        row: Row = {"segment": segment, "tokens": len(positions.get(segment, ()))}
        if math.isfinite(attribution.total):
            yield {
                **row,
                "score": score,
                "share": share,
                "total": attribution.total,
                "completeness_gap": attribution.completeness_gap,
                "error": "",
            }
        else:
            yield {**row, "error": NOT_FINITE}


def _sums(
    positions: Positions, attribution: Attribution
) -> Iterator[tuple[str, float, float | None]]:
    """Each segment, its score, and its share of the absolute scores; None if these are all zero."""
    total = attribution.total
    if isinstance(attribution, SegmentScores):
        for segment, score in attribution.scores.items():
            yield segment, score, abs(score) / total if total else None
        return
    # Shares are rounded to fp32 one by one, as they were when methods still gave shares, to keep
    # the bytes of the attribution table. Scores that are not finite have no sums.
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.abs(attribution.scores) / np.float32(total)
        sums = [
            [float(values[own].sum(dtype=np.float64)) for values in (attribution.scores, shares)]
            for own in positions.values()
        ]
    for segment, (score, share) in zip(positions, sums, strict=True):
        yield segment, score, share if total else None
