"""Scores as rows of the tokens, token_scores and segment_scores tables."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from interp.attribution.method import Attribution, SegmentScores, TokenScores
from interp.models.model import Model
from interp.reading.roles import token_roles, token_segments
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row

Positions = dict[str, list[int]]
"""Segment to its tokens, in the order of their first tokens."""


def token_rows(model: Model, prompt: TokenizedPrompt) -> list[Row]:
    """One row a token of a prompt."""
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
    """One row a method and segment of a prompt, "template" included."""
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
    """One row a method and token of a prompt, for methods that score tokens."""
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
    """One row a segment; without numbers where any score of the prompt is not finite."""
    sums = _sums(positions, attribution)
    finite = math.isfinite(attribution.total) and all(
        math.isfinite(score) for score, _ in sums.values()
    )
    for segment, (score, share) in sums.items():
        row: Row = {"segment": segment, "tokens": len(positions.get(segment, ()))}
        if not finite:
            yield {**row, "error": NOT_FINITE}
            continue
        row |= {"score": score, "total": attribution.total, "error": ""}
        row["completeness_gap"] = attribution.completeness_gap
        yield {**row, "share": share} if attribution.total > 0 else row


def _sums(positions: Positions, attribution: Attribution) -> dict[str, tuple[float, float]]:
    """The score of each segment, and its share of the absolute scores (nan if those are zero)."""
    total = attribution.total or math.nan
    if isinstance(attribution, SegmentScores):
        return {
            segment: (score, abs(score) / total) for segment, score in attribution.scores.items()
        }
    # Shares are rounded to fp32 one by one, as they were when methods still gave shares: the
    # published ratios keep their last digit.
    shares = np.abs(attribution.scores) / np.float32(total)
    return {
        segment: (
            float(attribution.scores[own].sum(dtype=np.float64)),
            float(shares[own].sum(dtype=np.float64)),
        )
        for segment, own in positions.items()
    }
