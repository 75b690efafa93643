"""The tables that the toolkit's measurements fill: their names, columns and units."""

from typing import Any

import pyarrow as pa

Row = dict[str, Any]
"""One row by column name; a column that is left out is null."""

_KEY = [("model", pa.string()), ("prompt_id", pa.string())]
_PAIR_KEY = [("model", pa.string()), ("pair_id", pa.string()), ("direction", pa.string())]
_SCORED = [("method", pa.string()), ("target", pa.string())]
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
    "segment_scores": pa.schema(
        [
            *_KEY,
            *_SCORED,
            ("segment", pa.string()),
            ("tokens", pa.int64()),
            ("score", pa.float64()),
            ("share", pa.float64()),
            ("total", pa.float64()),
            ("completeness_gap", pa.float64()),
            _ERROR,
        ]
    ),
    "token_scores": pa.schema([*_KEY, *_SCORED, ("position", pa.int64()), ("score", pa.float64())]),
    "tokens": pa.schema(
        [
            *_KEY,
            ("position", pa.int64()),
            ("token", pa.string()),
            ("segment", pa.string()),
            ("role", pa.string()),
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

segment_scores: one row per model, prompt, method, target and segment; "template" is what no segment
holds, so that the rows of a prompt are complete. `score` is the sum of its tokens' scores, in the
method's unit and with its sign (`interp methods`); `total` the sum of the absolute scores of all
tokens of the prompt, `share` the segment's part of it (null where nothing has a score).
`completeness_gap`, the same for all segments of a prompt: sum of all scores minus the difference of
the target that they explain, in its unit; null for methods that explain no difference. A prompt
whose scores are not finite has an error and no numbers.

token_scores: one row per model, prompt, method, target and token; methods that score segments as a
whole have none.

tokens: one row per model, prompt and token: what it is (`interp.reading.roles`), also for patches
by position.

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
