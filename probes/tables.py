"""The data dictionary of the probes' tables (`interp.tables`)."""

import pyarrow as pa

from interp.extend.estimates import NUMBER, TEXT, column
from interp.extend.measuring import BOOLEAN, INTEGER, MODEL, PROMPT_ID, table
from interp.extend.measuring import SCHEMAS as OF_INTERP

_FACT = (
    column("fact", TEXT, "the id of the fact's prompt as asked in the data"),
    column("wording", TEXT, "`as asked`, after `examples`, or the name of another wording"),
)

FAMILIARITY = table(
    "One row per model, fact and wording. `whole_name` and `after_echo` are NaN for models that "
    "are not causal language models.",
    MODEL,
    PROMPT_ID,
    *_FACT,
    column(
        "familiarity",
        NUMBER,
        "probability that the answer begins with one of its first tokens",
        "probability",
    ),
    column("rank", INTEGER, "place of the answer's first token among all; 1: the first", "place"),
    column("leading", TEXT, "the most probable token, as text"),
    column("whole_name", NUMBER, "probability of all tokens of the answer's name", "probability"),
    column(
        "after_echo",
        NUMBER,
        "`familiarity` in a reply that first repeats the sentence",
        "probability",
    ),
    column("echoes", BOOLEAN, "whether its most probable token begins to repeat the sentence"),
    column("first_token", TEXT, "the more probable first token, as text"),
    column("first_token_id", INTEGER, "id of the first token in the vocabulary", "token id"),
    column(
        "token_ids",
        pa.list_(INTEGER),
        "ids of the first tokens that count as the answer",
        "token id",
    ),
)

KNOWLEDGE = table(
    "One row per model, fact and wording.",
    MODEL,
    PROMPT_ID,
    *_FACT,
    column("completion", TEXT, "greedy completion of the fact by the model"),
    column("known", BOOLEAN, "whether it names the answer (after examples, in its first line)"),
    column(
        "matched", TEXT, "the name of the answer found in the completion; empty if there is none"
    ),
)

RESIDUALS = table(
    "One row per model, prompt, position and layer.",
    MODEL,
    PROMPT_ID,
    column("position", TEXT, "`last_token`, or the name of a segment for its last token"),
    column("layer", INTEGER, "0 is before the first layer; l is after l layers", "layers"),
    column(
        "vector",
        pa.list_(pa.float32()),
        "the residual stream at this position and layer, before the final norm",
        "the model's own",
    ),
)

SCHEMAS = {
    "answers": OF_INTERP["answers"],
    "familiarity": FAMILIARITY,
    "knowledge": KNOWLEDGE,
    "residuals": RESIDUALS,
}
"""The tables that the probes fill, by name."""
