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
    """Each segment, its score, and its share of the absolute scores, None where those are zero."""
    total = attribution.total
    if isinstance(attribution, SegmentScores):
        for segment, score in attribution.scores.items():
            yield segment, score, abs(score) / total if total else None
        return
    # Shares are rounded to fp32 one by one, as they were when methods still gave shares, so that
    # the attribution table keeps its bytes. Scores that are not finite have no sums.
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.abs(attribution.scores) / np.float32(total)
        sums = [
            [float(values[own].sum(dtype=np.float64)) for values in (attribution.scores, shares)]
            for own in positions.values()
        ]
    for segment, (score, share) in zip(positions, sums, strict=True):
        yield segment, score, share if total else None
