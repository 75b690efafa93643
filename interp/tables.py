"""The tables that the toolkit's measurements fill: their names, columns and units."""

from typing import Any

import pyarrow as pa

Row = dict[str, Any]
"""One row by column name; a column that is left out is null."""

_KEY = [("model", pa.string()), ("prompt_id", pa.string())]
_PAIR_KEY = [("model", pa.string()), ("pair_id", pa.string()), ("direction", pa.string())]
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
            ("completeness_gap", pa.float64()),
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
    "patches": pa.schema(
        [
            *_PAIR_KEY,
            ("method", pa.string()),
            ("site", pa.string()),
            ("layer", pa.int64()),
            ("head", pa.int64()),
            ("position", pa.int64()),
            ("token", pa.string()),
            ("role", pa.string()),
            ("tokens", pa.int64()),
            ("effect", pa.float64()),
            ("normalized", pa.float64()),
            ("flipped", pa.bool_()),
        ]
    ),
    "pairs": pa.schema(
        [
            *_PAIR_KEY,
            ("clean_prompt_id", pa.string()),
            ("corrupt_prompt_id", pa.string()),
            ("base_tokens", pa.int64()),
            ("source_tokens", pa.int64()),
            ("first_difference", pa.int64()),
            ("unaligned_tokens", pa.int64()),
            ("cells", pa.int64()),
            ("base_metric", pa.float64()),
            ("source_metric", pa.float64()),
            ("recognized", pa.bool_()),
            _ERROR,
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
(paper, Table 2), `ratio_unnormalized` of the sums (Table 3). `completeness_gap`, for captum's
methods: sum of attributions minus the difference of the target that they explain, in its unit.

token_scores: one row a model, prompt, method and token; `segment` is empty outside all segments.

patches: one row a model, pair, direction, method ("exact", or the estimate "gradient" or
"integrated") and cell. `effect` is the logit difference (positive minus negative answer) of the
base prompt under the patch minus that without it, in logits; `normalized` is the effect as a share
of the difference between the two prompts (1: the metric of the prompt that the activations come
from; null where the two prompts are alike); `flipped` whether the preferred answer changes.
`position` and `token` are null where several `tokens` are patched together, `head` where the site
has none; all three figures are null where no token of the cell has a counterpart.

pairs: one row a model, pair and direction. The base prompt is run (the corrupt one in denoising),
the source prompt gives the activations; `recognized` tells whether the model prefers the correct
answer on both. `first_difference` counts the tokens that both begin with, `unaligned_tokens` those
of the base without counterpart.
"""
