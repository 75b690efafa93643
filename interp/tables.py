"""The data dictionary: every table that the toolkit's measurements fill, column by column.

Parquet files keep the descriptions, units and sign conventions as metadata, and `python -m interp
tables` prints them (`interp.report.dictionary`). Measurements in other packages also describe their
tables with `table` and `column`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
"""One row, by column name; a missing column is null."""

NO_GAP = 1e-3
"""Smallest difference in logits between a pair's two metrics at which `normalized` is defined."""

TEXT, INTEGER, NUMBER, BOOLEAN = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TEXTS, INTEGERS, NUMBERS, VECTOR = map(pa.list_, (TEXT, INTEGER, NUMBER, pa.float32()))


def column(name: str, type_: pa.DataType, text: str, unit: str = "", *, sign: str = "") -> pa.Field:
    """A column with a short description of its values, and of the cases in which they are null.

    Numeric columns have a unit and, if numbers may be negative, a sign: what positive ones mean.
    """
    notes = {"description": text, "unit": unit, "sign": sign}
    return pa.field(name, type_, metadata={key: value for key, value in notes.items() if value})


def _text(name: str, text: str) -> pa.Field:
    return column(name, TEXT, text)


def _boolean(name: str, text: str) -> pa.Field:
    return column(name, BOOLEAN, text)


def _integer(name: str, text: str, unit: str) -> pa.Field:
    return column(name, INTEGER, text, unit)


def _number(name: str, text: str, unit: str, *, sign: str = "") -> pa.Field:
    return column(name, NUMBER, text, unit, sign=sign)


def table(text: str, *columns: pa.Field) -> pa.Schema:
    """The columns of a table, created with `column`, and its description.

    The text starts with a sentence that defines a row, such as "One row per model and prompt."
    """
    return pa.schema(columns, metadata={"description": text})


def note(described: pa.Schema | pa.Field, key: str) -> str:
    """The description of a table or column, or a column's unit or sign; empty if there is none."""
    value: bytes = (described.metadata or {}).get(key.encode(), b"")
    return value.decode()


MODEL = _text("model", "name of the model")
PROMPT_ID = _text("prompt_id", "the prompt, as in the prompts table")
PAIR_ID = _text("pair_id", "the pair, as in the prompts table")
ERROR = _text("error", "the reason why the numbers are missing; empty if there is no error")
POSITION = _integer("position", "position of the token in the prompt", "tokens, from 0")
SEGMENT = _text("segment", "name of the segment; `template` for tokens outside all segments")

_PROMPT = MODEL, PROMPT_ID
_SCORED = (
    *_PROMPT,
    _text("method", "the attribution method (`interp methods`), with its options"),
    _text("target", "the target whose value is attributed, as in `--target`"),
)
_EXCHANGED = *_PROMPT, _text("donor_kind", "kind of donor: `instance` or `counterpart`")
_PATCHED = MODEL, PAIR_ID, _text("direction", "`denoising` or `noising`")

_TOKEN = _text("token", "the token as text")
_ROLE = _text("role", "role in the segment; `last` or `pooled` where the answer is read")
_LAYER = _integer("layer", "index of the layer", "layers, from 0")

_METHODS_SIGN = "depends on the method, as `interp methods` states"
_FOR_POSITIVE = "positive where the model prefers `positive_option` of the pairs table"
_TO_SOURCE = "positive where the metric moves towards its value for the source prompt"
_FOR_ANSWER = "positive where the model prefers `answer` to `other_answer`"
_FOR_CORRECT = "positive where the model prefers the correct answer"
_SUPPORTS_CORRECT = "positive where the sentence supports the correct answer"
_SUPPORTS = "positive where the segment supports `answer`"


def _logits(name: str, text: str, sign: str = "") -> pa.Field:
    return column(name, NUMBER, text, "logits", sign=sign)


def _share(name: str, text: str, sign: str = "") -> pa.Field:
    return column(name, NUMBER, text, "share", sign=sign)


_PLACE = (
    *_PROMPT,
    _text("group", "the requested segment or role; `all` for the whole prompt"),
    POSITION,
    _TOKEN,
    SEGMENT,
    _ROLE,
    _integer("tokens", "number of tokens over which the vector is averaged", "tokens"),
    _text("site", "the activation, such as `resid_post`"),
    _LAYER,
    _integer("head", "index of the head; null if the site has no heads", "heads, from 0"),
)
TIE = "(tie)"
"""The answer of a model to which no answer is the most probable, since others are equally so."""

_OWN_UNIT = "the model's own"

_WHOLE = _boolean("whole", "whether the options were read as whole texts")

SCHEMAS: dict[str, pa.Schema] = {
    "answers": table(
        "One row per model and prompt. `answer` and `correct` are null if only generated text "
        "gives the answer. A prompt with an error is not judged: its `correct` is null, and "
        "neither it nor its pair counts towards an accuracy. For a classifier, the predicted token "
        "is the predicted class. If whole texts are read, `answer` is the option that the most "
        "probable tokens spell.",
        *_PROMPT,
        _text("predicted_token", "the most probable next token, as text"),
        _integer("predicted_token_id", "id of the predicted token in the vocabulary", "token id"),
        _number("predicted_probability", "probability of the predicted token", "probability"),
        _text("answer", "the predicted token's option; empty if none, `(tie)` if several"),
        _boolean("correct", "whether `answer` is the correct option"),
        ERROR,
    ),
    "option_probabilities": table(
        "One row per model, prompt and option. For a classifier, an option is a class, and its "
        "token id is the index of the class. If whole texts are read, an option has the "
        "probability of all of its texts, whose tokens stand one after another in `token_ids`; "
        "shares are taken after any normalization by length.",
        *_PROMPT,
        _text("option", "name of the answer option"),
        _number("probability", "summed probability of its first tokens or texts", "probability"),
        _share("relative_probability", "share of the options' sum; null if only one"),
        column("token_ids", INTEGERS, "ids of its first tokens or of all its texts", "token id"),
        _WHOLE,
    ),
    "changed_options": table(
        "One row per model, prompt, change of the prompt and option. A prompt that a change leaves "
        "empty or as it is has no rows.",
        *_PROMPT,
        _text("change", "`content-free`, `without` (a segment) or `swapped` (options)"),
        _text("what", "the text in place of the content, or the left-out segment"),
        _text("option", "name of the answer option"),
        _number("probability", "as in `option_probabilities`", "probability"),
        _share("relative_probability", "as in `option_probabilities`"),
    ),
    "completions": table(
        "One row per model and prompt.",
        *_PROMPT,
        _text("completion", "the generated text"),
        _integer("tokens", "length of the generated text; null if it was stored", "tokens"),
        _text(
            "finished",
            "how the text ended: `eos`, `stop` (or any end of a stored text) or `length`",
        ),
        _text("outcome", "`answered`, `unparsed` or `refused`"),
        _text("answer", "the answer found in the text; empty unless `outcome` is `answered`"),
        _boolean("correct", "whether this is the correct answer; null if there is an error"),
        ERROR,
    ),
    "thoughts": table(
        "One row per model, prompt and draw: the thought that a model writes before its answer. "
        "`before`, `sentences` and `after`, joined in this order, are the entire text between the "
        "prompt and the answer. Written only with `--thinking on`.",
        *_PROMPT,
        _integer("draw", "index of the thought on this prompt", "draws, from 0"),
        _integer("seed", "seed of sampling", "seed"),
        _text("before", "the mark that begins the thought; empty if it is in the prompt"),
        column(
            "sentences", TEXTS, "the sentences of the thought, each with the white space after it"
        ),
        _text("after", "the mark that ends the thought, with white space; empty if none"),
        _integer("tokens", "length of the thought, including its marks", "tokens"),
        column("token_ids", INTEGERS, "ids of the thought's tokens, as generated", "token id"),
        _text("finished", "how the thought ended: `marker`, `eos` (text ended first) or `length`"),
        _boolean("forced", "whether `--force-end` wrote the mark that ends the thought"),
        _boolean("same_tokens", "whether tokenizing the text of the thought yields `token_ids`"),
        _text("completion", "the text after the thought"),
        _text("outcome", "`answered`, `unparsed` or `refused`"),
        _text("answer", "answer found in `completion`; empty unless `outcome` is `answered`"),
        _boolean("correct", "whether `answer` is the correct answer"),
        ERROR,
    ),
    "soft_answers": table(
        "One row per model and prompt. Source: Wang and Shi (2025), Section 4.1 and formula 5.",
        *_PROMPT,
        _share("soft_accuracy", "the correct option's share of the probability of all options"),
        _number(
            "perplexity",
            "perplexity of the prompt as read, from the second token on",
            "exp(nats per token)",
        ),
        _integer("prompt_tokens", "length of the prompt as the model reads it", "tokens"),
        ERROR,
    ),
    "segment_scores": table(
        "One row per model, prompt, method, target and segment. The segments, including "
        "`template`, cover the whole prompt. A prompt whose scores are not finite has an error "
        "and no numbers.",
        *_SCORED,
        SEGMENT,
        _integer(
            "tokens", "number of tokens in the segment; null if segments are scored", "tokens"
        ),
        _number(
            "score",
            "sum of the scores of the segment's tokens",
            "the method's unit",
            sign=_METHODS_SIGN,
        ),
        _share("share", "the segment's share of `total`; null if `total` is zero"),
        _number("total", "sum of all absolute scores in the prompt", "the method's unit"),
        _number(
            "completeness_gap",
            "sum of scores minus the change they should explain; null if none",
            "the target's unit",
            sign="positive where the scores add up to more than the change they should explain",
        ),
        ERROR,
    ),
    "token_scores": table(
        "One row per model, prompt, method, target and token. Written only with "
        "`--keep-tokens`; methods that score whole segments have no rows.",
        *_SCORED,
        POSITION,
        _number("score", "the token's score", "the method's unit", sign=_METHODS_SIGN),
    ),
    "tokens": table(
        "One row per model, prompt and token. Written only with `--keep-tokens`. The patches "
        "table can be joined to this table by `position`.",
        *_PROMPT,
        POSITION,
        _TOKEN,
        SEGMENT,
        _ROLE,
    ),
    "segment_effects": table(
        "One row per model, prompt, kind of donor, and segment (or pair of segments). The logit "
        "difference is the logit of the model's own answer to the intact prompt minus that of "
        "another answer, and an effect is its change when donors replace segments. Donors are "
        "other instances of the prompt's template (`instance`) or the other side of its pair "
        "(`counterpart`). Effects are means over donors. Rows for two segments contain only an "
        "interaction, and rows for one segment contain all other effects. Other cells are null, "
        "and so are standard deviations if there is only one donor.",
        *_EXCHANGED,
        _text("segment", "the segment"),
        _text("other_segment", "the second of two segments, otherwise null"),
        _text("answer", "the model's own answer to the intact prompt"),
        _text("other_answer", "the answer with which `answer` is compared"),
        _logits("shapley", "exact Shapley value of the segment", _SUPPORTS),
        _logits("shapley_sd", "standard deviation of `shapley` over donors"),
        _logits("leave_one_out", "change when a donor replaces only this segment", _SUPPORTS),
        _logits("leave_one_out_sd", "standard deviation of `leave_one_out` over donors"),
        _logits(
            "interaction",
            "Shapley interaction index of the two segments",
            "positive where the two segments support `answer` more together than separately",
        ),
        _logits("interaction_sd", "standard deviation of `interaction` over donors"),
        _logits("value", "logit difference for the intact prompt", _FOR_ANSWER),
        _logits(
            "value_without", "mean logit difference with all segments from donors", _FOR_ANSWER
        ),
        _integer("donors", "number of donors", "donors"),
        column("donor_names", TEXTS, "names of the donors, in the order of `coalition_values`"),
        _WHOLE,
        _text("note", "a remark if no donor changes the segment, or too few exist"),
        ERROR,
    ),
    "thought_answers": table(
        "One row per model, prompt, draw and reading. A reading is the answer after a thought or "
        "after a text that replaces it: `direct` (as with `--thinking off`), `empty` (only the "
        "marks), `whole` (the model's own thought), `first` (its first sentences), `mistake` (with "
        "one sentence from the thought about another prompt; only for the first thought that "
        "ended), `placebo` (the whole thought about another prompt) and `filler` (dots, about as "
        "many tokens). Thoughts that never ended have no rows. `direct` has one row per prompt.",
        *_PROMPT,
        _integer("draw", "number of the thought; null for `direct`", "draws, from 0"),
        _text("reading", "kind of text before the answer"),
        _integer(
            "sentence",
            "sentences read; for `mistake`, which one is exchanged (from 1); or null",
            "sentences",
        ),
        _integer("sentences", "number of sentences in the thought", "sentences"),
        _logits(
            "value", "logit of the correct answer minus that of the other answer", _FOR_CORRECT
        ),
        _text("answer", "the most probable option; `(tie)` if several are"),
        _boolean("correct", "whether `answer` is the correct answer"),
        _WHOLE,
        ERROR,
    ),
    "thought_effects": table(
        "One row per model, prompt, donor and segment (`all` for all segments together). The "
        "changed prompt has the donor's text in the segment. Each draw has a thought about the "
        "prompt and one about the changed prompt; draws in which either thought never ended are "
        "omitted. A value is the logit of the correct answer to the unchanged prompt minus that of "
        "the other answer, for each combination of prompt and thought.",
        *_EXCHANGED,
        _text("donor", "name of the donor"),
        _text("segment", "the exchanged segment, or `all`"),
        _integer("draws", "number of draws in which both thoughts ended", "draws"),
        _integer("draws_asked", "number of requested draws", "draws"),
        *(
            column(name, NUMBERS, f"value in each draw, for {text}", "logits", sign=_FOR_CORRECT)
            for name, text in (
                ("own", "the prompt and its own thought"),
                ("changed", "the changed prompt with the prompt's thought"),
                ("own_under_other", "the prompt with the changed prompt's thought"),
                ("changed_under_other", "the changed prompt and its own thought"),
            )
        ),
        ERROR,
    ),
    "sentence_effects": table(
        "One row per model, prompt and sentence of the first thought that ended. Effects are "
        "changes in the logit of the correct answer minus that of the other answer. `exchanged` "
        "replaces the sentence with one from the same place in another draw. `resampled` compares "
        "thoughts that the model continues after the sentence with thoughts that it continues from "
        "just before it.",
        *_PROMPT,
        _integer("sentence", "number of the sentence in the thought", "sentences, from 1"),
        _integer("sentences", "number of sentences in the thought", "sentences"),
        _text("text", "the sentence"),
        _logits("left_out", "change when the sentence is omitted", _SUPPORTS_CORRECT),
        _logits(
            "exchanged",
            "change when another draw's sentence replaces it; null if none differs",
            _SUPPORTS_CORRECT,
        ),
        _logits(
            "resampled",
            "mean of continuations with it minus without it; null if none ended",
            _SUPPORTS_CORRECT,
        ),
        ERROR,
    ),
    "coalition_values": table(
        "One row per model, prompt, kind of donor and coalition. A coalition is the set of kept "
        "segments; all others come from a donor. A prompt with an error has no rows.",
        *_EXCHANGED,
        column("segments", TEXTS, "all segments that donors can replace"),
        _integer(
            "coalition", "the segments that are kept: bit i is 1 if segment i is kept", "bits"
        ),
        column(
            "values",
            NUMBERS,
            "logit difference for the coalition, one for each donor",
            "logits",
            sign="positive where the model prefers `answer` of segment_effects to `other_answer`",
        ),
    ),
    "context_scores": table(
        "One row per model, prompt, method and segment. Methods of context attribution, which "
        "`--context` names, score segments by the values of coalitions with other instances as "
        "donors. A prompt with an error has no rows.",
        *_PROMPT,
        _text("method", "the method, with its options"),
        _text("segment", "name of the segment"),
        _logits(
            "score", "score of the segment", "positive if the segment supports the model's answer"
        ),
    ),
    "patches": table(
        "One row per model, pair, direction, method, source and cell. A cell is a site in a layer "
        "(and head) at a token or group of tokens of the base prompt. `position` and `token` are "
        "null if several tokens are patched together, and `head` is null if the site has no heads. "
        "`effect`, `normalized` and `flipped` are null if no token of the cell has a counterpart. "
        "`normalized` is 0 if the patch has no effect and 1 if it yields the metric of the source "
        "prompt. It is null for a control, since a control has the same answer.",
        *_PATCHED,
        _text("method", "`exact`, or an estimate such as `integrated`, with its options"),
        _text("source", "where activations come from: `counterpart` or `control`"),
        _text("site", "the activation that is patched, such as `resid_pre`"),
        _LAYER,
        _integer("head", "index of the head", "heads, from 0"),
        _integer("position", "position of the token in the base prompt", "tokens, from 0"),
        _TOKEN,
        _text("role", "role or segment of the tokens"),
        _integer("tokens", "number of tokens patched together", "tokens"),
        _logits(
            "effect",
            "base prompt's metric with the patch minus the metric without it",
            "positive where the patch moves the answer towards `positive_option` of the pairs "
            "table",
        ),
        _share(
            "normalized",
            "`effect` / (source's metric - base's); null if these nearly agree",
            _TO_SOURCE,
        ),
        _boolean("flipped", "whether the other answer becomes the preferred one"),
    ),
    "pairs": table(
        "One row per model, pair and direction. The model runs the base prompt (the corrupt one in "
        "denoising, the clean one in noising) with activations from the source prompt. The metric "
        "is the logit of `positive_option` minus that of `negative_option`.",
        *_PATCHED,
        _text("clean_prompt_id", "the clean prompt, as in the prompts table"),
        _text("corrupt_prompt_id", "the corrupt prompt, as in the prompts table"),
        _text("positive_option", "the option whose logit counts as positive"),
        _text("negative_option", "the option whose logit counts as negative"),
        _integer("base_tokens", "length of the base prompt as the model reads it", "tokens"),
        _integer("source_tokens", "length of the source prompt as the model reads it", "tokens"),
        _integer("first_difference", "number of tokens before the first difference", "tokens"),
        _integer(
            "unaligned_tokens",
            "number of tokens of the base prompt without a counterpart",
            "tokens",
        ),
        _integer("cells", "number of cells of the pair", "cells"),
        _WHOLE,
        _logits("base_metric", "metric of the base prompt", _FOR_POSITIVE),
        _logits("source_metric", "metric of the source prompt", _FOR_POSITIVE),
        _logits(
            "empty_metric",
            "metric without any edge; null unless whole answers are read",
            _FOR_POSITIVE,
        ),
        _boolean("recognized", "whether the model prefers the correct answer on both prompts"),
        _text("control", "name of the control's donor; null without `--control`"),
        _logits("control_metric", "metric of the control", _FOR_POSITIVE),
        _boolean("checked", "whether all cells were run exactly; null without `--guarantee`"),
        _text("absent", "sites that some layers lack, with the reason; null if none is"),
        ERROR,
    ),
    "steered": table(
        "One row per model and prompt whose stream is changed. The metric is the logit of "
        "`gold_option` minus that of `other_option`.",
        *_PROMPT,
        _text("pair_id", "the pair, as in the prompts table"),
        _text("gold_option", "the correct answer"),
        _text("other_option", "the other option of the pair's contrast"),
        _text("own_word", "the word of this prompt; null without words"),
        _text("other_word", "the word that is exchanged with it; null without words"),
        _text("third_word", "a word that is neither; null if no donor or option gives one"),
        _WHOLE,
        _logits("metric", "metric of the prompt", "positive for the correct answer"),
        ERROR,
    ),
    "steering_effects": table(
        "One row per model, prompt, change, direction, dose, role, layer, source, draw. A "
        "prompt that lacks a role has no rows for it; for `difference`, neither has one whose "
        "tokens are the same on both sides up to that role.",
        *_PROMPT,
        _text("direction", "`jacobian`, `own`, `logit` or `difference`"),
        _text("change", "`swap`, `project` or `add`"),
        _number("dose", "factor by which the change is multiplied", "times"),
        _text("role", "role or segment of the tokens"),
        _integer("tokens", "number of tokens that are changed", "tokens"),
        _integer("layer", "index of the layer; null for a band", "layers, from 0"),
        _text(
            "source", "`direction`, `placebo` (random, same norm) or `third` (own and third word)"
        ),
        _integer("draw", "number of the placebo; null otherwise", "draws, from 0"),
        _logits(
            "effect",
            "metric without the change minus the metric with it",
            "positive where the change moves the answer from `gold_option` to `other_option`",
        ),
        _boolean("turned", "whether the other answer becomes the preferred one"),
    ),
    "edges": table(
        "One row per model, pair, method and edge. An edge leads from a writer, which adds to the "
        "residual stream, to a reader. Writers are `input`, heads (`a0.h3` is head 3 of layer 0) "
        "and MLPs (`m0`). Readers are queries (`a1.h3.q`), keys and values of key-value heads "
        "(`a1.kv0.k`, `a1.kv0.v`), MLPs and `logits`. In a layer without heads that can be "
        "separated, the whole mixer (`a1`) is a writer and a reader. The base prompt of the pairs "
        "table is run: the clean prompt in `noising`, the corrupt prompt in `denoising`. The "
        "reader of a patched edge reads what the writer adds in the source prompt. A pair with an "
        "error has no rows, "
        "and `exact` has rows only for edges that were run.",
        *_PATCHED,
        _text("method", "`exact`, or an estimate such as `integrated`, with its options"),
        _text("writer", "the component at which the edge starts"),
        _text("reader", "the component at which the edge ends"),
        _logits(
            "effect",
            "change of the base prompt's metric when this edge is patched",
            "positive where the patched edge moves the answer towards `positive_option` of the "
            "pairs table",
        ),
    ),
    "circuits": table(
        "One row per model, pair and circuit. Only the edges of the circuit are kept: each reader "
        "reads what writers with an edge to it add in this run, and what all other writers add in "
        "the corrupt prompt. With all edges, the metric equals `base_metric` of the pairs table; "
        "without any, it equals `source_metric` or, for whole answers, `empty_metric`, which "
        "differs from it if the prompts differ in length. A pair with an error has no rows.",
        MODEL,
        PAIR_ID,
        _text("method", "the method whose mean effects rank the edges, or `random`"),
        _text("choice", "`greedy`, from the logits upwards, or `top`, the largest effects"),
        _integer("draw", "number of the random ranking; 0 if a method ranks the edges", "from 0"),
        _share("share", "chosen edges as a share of all edges, before pruning"),
        _integer("edges", "number of edges on paths from the input to the logits", "edges"),
        _logits("metric", "clean prompt's metric with only these edges", _FOR_POSITIVE),
    ),
    "activation_vectors": table(
        "One row per vector (model, prompt, place, site, layer and head). A place is a token, or "
        "several tokens over which the vector is averaged; for an average, `position`, `token`, "
        "`segment` and `role` are null. A prompt with an error in `answers` has no rows. The table "
        "exists only in the shards; the run writes its contents to the `activations` table and "
        "safetensors files.",
        *_PLACE,
        column("vector", VECTOR, "the numbers of the vector, in the order of the units", _OWN_UNIT),
    ),
    "lens_readings": table(
        "One row per reading (model, prompt, token, layer and method). The scores of `words` stand "
        "in their order. A score is a word's row of the lens times the residual stream behind the "
        "layer, divided by the scale of the final norm; at the last layer, it is the word's logit, "
        "up to a constant. Layer -1 is the stream before the first layer, the embeddings. A prompt "
        "with an error in `answers` has no rows.",
        *_PROMPT,
        _text("group", "the requested segment or role"),
        POSITION,
        _TOKEN,
        SEGMENT,
        _ROLE,
        _integer("layer", "index of the layer; -1 for the embeddings", "layers, from -1"),
        _text("method", "the lens: `jacobian`, `own` or `logit`"),
        column("words", TEXTS, "the words among which is read"),
        _integer("left_out", "words left out, as they share their first token", "words"),
        _text("fact", "id of the fact that the prompt is about; null without facts"),
        _text("right", "the right word; null if none, or if it is left out"),
        _boolean("seen", "whether the right word stands in the prompt up to `group`"),
        column(
            "scores",
            VECTOR,
            "the score of each word",
            "logits",
            sign="positive where the layer makes the model likely to say the word",
        ),
        column(
            "from_embedding",
            VECTOR,
            "what the lens reads from the token's embedding alone",
            "logits",
            sign="as `scores`",
        ),
        _number(
            "rank", "rank of the right word; equal scores share their mean rank", "rank, from 1"
        ),
        _logits(
            "log_odds",
            "log-odds of the right word against the others",
            "positive where the right word outweighs all others together",
        ),
    ),
    "node_sets": table(
        "One row per model, pair, direction, ranking and set. The top cells of a ranking are "
        "patched together from the counterpart. Written only with `--sets`.",
        *_PATCHED,
        _text("sites", "the sites to which the cells belong, separated by commas"),
        _text("ranking", "`random`, or the method whose effects rank the cells"),
        _integer("cells", "number of cells in the set", "cells"),
        _integer("of_cells", "number of cells that can change the answer", "cells"),
        _logits("metric", "base prompt's metric with the set patched", _FOR_POSITIVE),
        _share(
            "normalized",
            "0: the base prompt's metric; 1: the source's; null if the two nearly agree",
            _TO_SOURCE,
        ),
    ),
}
"""Tables of the toolkit's measurements, by name; those of probes are in `interp_probes.tables`."""


FACTOR, START, END = "FACTOR", "SEGMENT_start", "SEGMENT_end"
"""Placeholders for the columns of the prompts table whose names come from the data."""

PROMPTS = table(
    "One row per prompt. Besides the fixed columns, there is a column for each factor of the data, "
    "named after the factor, and two columns for each segment. They are null for a prompt without "
    "the factor or segment. `weight` describes the sample, not the prompt: it changes when a run "
    "grows. `messages` has the keys system_prompt, demonstrations (each with question, answer and, "
    "if it was drawn, prompt_id) and answer_prefix.",
    _text("prompt_id", "id of the prompt; unique"),
    _text("pair_id", "id shared by the prompts of a pair or group"),
    _text("side", "label of the prompt within its pair or group"),
    _text("text", "the prompt before any chat template"),
    _text("gold", "the correct answer"),
    _number(
        "weight", "number of prompts that this prompt represents in the whole data set", "prompts"
    ),
    _text(FACTOR, "level of a factor that was varied"),
    _integer(START, "where a segment begins in `text`", "characters, from 0"),
    _integer(END, "where the segment ends: the first character after it", "characters, from 0"),
    _text("messages", "messages around the text, as JSON; absent if none"),
)
"""The table of prompts that every run writes, next to its measurements."""


ACTIVATIONS = table(
    "One row per vector that `interp activations` writes. The vector is row `row` of the "
    "tensor `tensor` in the safetensors file `file`. A place is a token, or several tokens over "
    "which the vector is averaged; for an average, `position`, `token`, `segment` and "
    "`role` are null. There is also a column for each factor of the data; factors that share the "
    "name of another column are only in the prompts table.",
    *_PLACE,
    _text("file", "the safetensors file that holds the vector, in the same folder"),
    _text("tensor", "tensor of a site and layer, (vectors, width), such as `resid_post.3`"),
    _integer("row", "index of the row in the tensor", "rows, from 0"),
    PAIR_ID,
    PROMPTS.field("side"),
    PROMPTS.field("gold"),
    SCHEMAS["answers"].field("answer"),
    SCHEMAS["answers"].field("correct"),
    PROMPTS.field(FACTOR),
)
"""The index of vectors, which runs of `interp activations` write."""


def activations_index(factors: Iterable[str]) -> pa.Schema:
    """The columns of the index of activations, without factors that have another column's name."""
    index = ACTIVATIONS.remove(ACTIVATIONS.get_field_index(FACTOR))
    for name in factors:
        if name not in index.names:
            index = index.append(PROMPTS.field(FACTOR).with_name(name))
    return index


def factors_of(prompts: "pd.DataFrame") -> list[str]:
    """The factor columns of a prompts table: its text columns that are not in `PROMPTS`."""
    others = [str(name) for name in prompts.columns if name not in PROMPTS.names]
    return [name for name in others if prompts[name].dtype.kind not in "iuf"]


def prompts_table(schema: pa.Schema) -> pa.Schema:
    """The schema of a prompts table, with the descriptions of its columns added."""
    columns = (field.with_metadata(_kind(field).metadata) for field in schema)
    return pa.schema(columns, metadata=PROMPTS.metadata)


def _kind(field: pa.Field) -> pa.Field:
    """The column of `PROMPTS` that describes a column of a prompts table."""
    if field.name in PROMPTS.names:
        return PROMPTS.field(field.name)
    place = START if field.name.endswith("_start") else END
    # All other columns are factors, which are strings.
    return PROMPTS.field(place if pa.types.is_integer(field.type) else FACTOR)
