"""The tables that the toolkit's measurements fill: their names, columns and units."""

from typing import Any

import pyarrow as pa

Row = dict[str, Any]
"""One row by column name; a column that is left out is null."""

_KEY = [("model", pa.string()), ("prompt_id", pa.string())]
_ERROR = ("error", pa.string())

SCHEMAS: dict[str, pa.Schema] = {
    "answers": pa.schema(
        [
            *_KEY,
            ("predicted_token", pa.string()),
            ("predicted_token_id", pa.int64()),
            ("predicted_probability", pa.float64()),
            ("positive_probability", pa.float64()),
            ("negative_probability", pa.float64()),
            ("answer", pa.string()),
            ("correct", pa.bool_()),
            _ERROR,
        ]
    ),
    "soft_answers": pa.schema(
        [
            *_KEY,
            ("relative_positive", pa.float64()),
            ("soft_accuracy", pa.float64()),
            ("perplexity", pa.float64()),
            ("prompt_tokens", pa.int64()),
            ("positive_token_ids", pa.list_(pa.int64())),
            ("negative_token_ids", pa.list_(pa.int64())),
            _ERROR,
        ]
    ),
    "attributions": pa.schema(
        [
            *_KEY,
            ("method", pa.string()),
            ("premise1_sum", pa.float64()),
            ("premise2_sum", pa.float64()),
            ("premise1_tokens", pa.int64()),
            ("premise2_tokens", pa.int64()),
            ("ratio", pa.float64()),
            ("ratio_unnormalized", pa.float64()),
            _ERROR,
        ]
    ),
    "token_scores": pa.schema(
        [
            *_KEY,
            ("method", pa.string()),
            ("position", pa.int64()),
            ("token", pa.string()),
            ("segment", pa.string()),
            ("score", pa.float64()),
        ]
    ),
}
"""answers: one row a model and prompt; probabilities, the option that the most probable token
belongs to (empty if to none), whether it is the correct one, and why there are no numbers (error).

soft_answers: one row a model and prompt; the positive answer's share of the probability of both
answers, the correct answer's share of it, the perplexity of the prompt, and the tokens that the
answers were scored by.

attributions: one row a model, prompt and method; sums of token scores over each premise, which are
shares of the whole prompt's score, token counts, and premise 2 over premise 1: `ratio` of the means
(paper, Table 2), `ratio_unnormalized` of the sums (Table 3).

token_scores: one row a model, prompt, method and token; `segment` is empty outside all segments.
"""
