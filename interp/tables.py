"""The tables that the toolkit's measurements fill: their names, columns and units."""

from typing import Any

import pyarrow as pa

Row = dict[str, Any]
"""One row by column name; a column that is left out is null."""

NO_GAP = 1e-3
"""Logit differences of the two prompts of a pair that are closer than this, in logits, leave no
share to recover: `normalized` is null."""

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
            ("answer", pa.string()),
            ("correct", pa.bool_()),
            _ERROR,
        ]
    ),
    "option_probabilities": pa.schema(
        [
            *_KEY,
            ("option", pa.string()),
            ("probability", pa.float64()),
            ("relative_probability", pa.float64()),
            ("token_ids", pa.list_(pa.int64())),
        ]
    ),
    "completions": pa.schema(
        [
            *_KEY,
            ("completion", pa.string()),
            ("tokens", pa.int64()),
            ("finished", pa.string()),
            ("outcome", pa.string()),
            ("answer", pa.string()),
            ("correct", pa.bool_()),
            _ERROR,
        ]
    ),
    "soft_answers": pa.schema(
        [
            *_KEY,
            ("soft_accuracy", pa.float64()),
            ("perplexity", pa.float64()),
            ("prompt_tokens", pa.int64()),
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
    "segment_effects": pa.schema(
        [
            *_KEY,
            ("donor_kind", pa.string()),
            ("segment", pa.string()),
            ("other_segment", pa.string()),
            ("answer", pa.string()),
            ("other_answer", pa.string()),
            ("shapley", pa.float64()),
            ("shapley_sd", pa.float64()),
            ("leave_one_out", pa.float64()),
            ("leave_one_out_sd", pa.float64()),
            ("interaction", pa.float64()),
            ("interaction_sd", pa.float64()),
            ("value", pa.float64()),
            ("value_without", pa.float64()),
            ("donors", pa.int64()),
            ("donor_names", pa.list_(pa.string())),
            ("note", pa.string()),
            _ERROR,
        ]
    ),
    "coalition_values": pa.schema(
        [
            *_KEY,
            ("donor_kind", pa.string()),
            ("segments", pa.list_(pa.string())),
            ("coalition", pa.int64()),
            ("values", pa.list_(pa.float64())),
        ]
    ),
    "soft_keeping": pa.schema(
        [
            *_KEY,
            *_SCORED,
            ("tokens", pa.int64()),
            ("values", pa.list_(pa.float64())),
            ("value", pa.float64()),
            ("value_without", pa.float64()),
            _ERROR,
        ]
    ),
    "patches": pa.schema(
        [
            *_PAIR_KEY,
            ("method", pa.string()),
            ("source", pa.string()),
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
            ("positive_option", pa.string()),
            ("negative_option", pa.string()),
            ("base_tokens", pa.int64()),
            ("source_tokens", pa.int64()),
            ("first_difference", pa.int64()),
            ("unaligned_tokens", pa.int64()),
            ("cells", pa.int64()),
            ("base_metric", pa.float64()),
            ("source_metric", pa.float64()),
            ("recognized", pa.bool_()),
            ("control", pa.string()),
            ("control_metric", pa.float64()),
            ("checked", pa.bool_()),
            _ERROR,
        ]
    ),
    "node_sets": pa.schema(
        [
            *_PAIR_KEY,
            ("sites", pa.string()),
            ("ranking", pa.string()),
            ("cells", pa.int64()),
            ("of_cells", pa.int64()),
            ("metric", pa.float64()),
            ("normalized", pa.float64()),
        ]
    ),
}
"""prompts: one row per prompt, beside the measured tables: prompt_id, pair_id, side, text, gold,
`weight` (float64), a column of text for each factor, and where each segment begins and ends in the
text. The weight is the number of prompts of the whole data set that the prompt represents: those
of its stratum (`PromptSet.strata`) over those of it that were drawn; 1 where all were. It describes
a sample, not a prompt: a run that grows gets new weights, and they are in no shard.

answers: one row per model and prompt; the most probable token, the option that it belongs to
(empty if to none), whether it is the correct one, and why there are no numbers (error). `answer`
and `correct` are null where only a generated text gives them. Of a classifier the predicted token
is the predicted class.

option_probabilities: one row per model, prompt and option; the probability that the answer begins
with one of `token_ids` (of a classifier: that it is this class), and that probability's share of
those of all options of the prompt (null where it has one option only).

completions: one row per model and prompt; the generated text and its number of tokens, how it ended
("eos", "stop" for a stop string, "length"), whether it is "answered", "unparsed" or "refused", the
answer that was found in it (empty unless it is answered), and whether that is correct.

soft_answers: one row per model and prompt; the correct option's share of the probability of all
options, and the perplexity of the prompt.

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

segment_effects: one row per model, prompt, kind of donor and segment, and one for each two segments
(`other_segment`). The value of a prompt is the logit of the model's own answer to the intact prompt
(`answer`) minus that of `other_answer`; `value` is that of the intact prompt, `value_without` the
mean with all segments from donors. `shapley`, `leave_one_out` and `interaction` are means over
donors, in logits, each with its sample standard deviation over them (_sd; null of one donor).
`donor_kind` is "instance" (another instance of the prompt's template) or "counterpart" (the other
side of its pair). A note names segments that no donor changes, and of fewer donors than asked
for.

coalition_values: one row per model, prompt, kind of donor and coalition of `segments` that are
kept, all others being a donor's: bit i of `coalition` is segment i. `values` are those of
the prompts, in logits as in segment_effects, donor by donor in the order of its `donor_names`. A
prompt with an error has none.

soft_keeping: one row per model, prompt, target and method or control ("oracle", "reversed",
"random", "length", "position"). Of the `tokens` that the donor changes each is kept by chance, the
likelier the higher its score (`interp.attribution.soft_keeping`). `values` are the mean target over
random masks where one to nine tenths of the tokens are kept in expectation, `value` that of the
prompt, `value_without` that with all of these tokens from the donor; in logits for a margin.

patches: one row per model, pair, direction, method ("exact", or the estimate "gradient" or
"integrated") and cell. `effect` is the logit difference (positive minus negative option) of the
base prompt under the patch minus that without it, in logits; `normalized` is the effect as a share
of the difference between the two prompts (1: the metric of the prompt that the activations come
from; null where the two prompts are alike); `flipped` whether the preferred answer changes.
`position` and `token` are null where several `tokens` are patched together, `head` where the site
has none; all three figures are null where no token of the cell has a counterpart.

pairs: one row per model, pair and direction. The base prompt is run (the corrupt one in denoising),
the source prompt gives the activations; the metrics are logit differences of `positive_option`
and `negative_option`; `recognized` says whether the model prefers the correct
answer on both. `first_difference` counts the tokens that both begin with, `unaligned_tokens` those
of the base without counterpart. `checked` says whether all cells were run exactly for a
guarantee on estimates; null without one.

node_sets: one row per model, pair, direction, ranking ("random", or the method of the effects that
cells are ranked by) and set: the first `cells` of the ranking, of `of_cells` that can change the
answer at all `sites` together, are patched from the counterpart at once. `metric` and `normalized`
are as in patches and pairs.
"""
