"""Token scores as rows of the attributions and token_scores tables."""

from collections.abc import Iterator

from interp.attribution.one_pass import TokenScores
from interp.attribution.premises import premise_row
from interp.models.model import Model
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.tables import Row


def attribution_rows(model: Model, batch: Batch, index: int, scores: TokenScores) -> list[Row]:
    """One row a method for one prompt of a batch."""
    tokenized = batch.prompts[index]
    own = batch.unpadded(index)
    return [
        {
            "model": model.name,
            "prompt_id": tokenized.prompt.id,
            "method": method,
            **premise_row(tokenized, method_scores[index, own]),
        }
        for method, method_scores in scores.items()
    ]


def token_score_rows(model: Model, batch: Batch, index: int, scores: TokenScores) -> list[Row]:
    """One row a method and token for one prompt of a batch."""
    tokenized = batch.prompts[index]
    own = batch.unpadded(index)
    tokens = model.tokenizer.convert_ids_to_tokens(list(tokenized.token_ids))
    segments = list(_segment_of_each_token(tokenized))
    return [
        {
            "model": model.name,
            "prompt_id": tokenized.prompt.id,
            "method": method,
            "position": position,
            "token": tokens[position],
            "segment": segments[position],
            "score": float(score),
        }
        for method, method_scores in scores.items()
        for position, score in enumerate(method_scores[index, own])
    ]


def _segment_of_each_token(prompt: TokenizedPrompt) -> Iterator[str]:
    for position in range(len(prompt)):
        yield next(
            (name for name, (start, end) in prompt.segments.items() if start <= position < end), ""
        )
