"""The page docs/models.md: one row per type, one mark per measurement."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import transformers

from interp.models.tried import ABSENT, GIVEN, REFUSED, RIGHT, SOME
from tests.zoo.check import MEASUREMENTS

SIGNS = {RIGHT: "✓", SOME: "◐", GIVEN: "○", ABSENT: "–", REFUSED: "✗"}

SHORT = {
    "input_gradient": "gradient",
    "input_x_gradient": "gradient × input",
    "integrated_gradients": "integrated gradients",
    "frozen_norms": "frozen norms",
    "value_weighted_norm": "value norms",
}

TITLES = {
    "text": "Language models",
    "wrapper": "Models that also read images",
    "decoder part": "Decoders of encoder-decoder models",
}

HEAD = """\
# Models

What works on each type of model, tried on one small random model of every type that transformers
{version} lists with a causal head or with images and text. Random weights show whether numbers
are right, not what a trained model does. `make zoo` writes this page and the table behind it
(`interp/models/tried.csv`), with the reason for each refusal; `interp doctor --model NAME` prints
the row of a model's type. Types of a newer transformers were not tried.

| mark | meaning |
|---|---|
| ✓ | equals plain passes with hooks, the model's own attention, or finite differences |
| ◐ | the same, but only some layers have it; the others are named with the reason |
| ○ | given; nothing independent to compare it with |
| – | absent: models of this type have none |
| ✗ | refused in one sentence |

Layers of types without a list of names in `interp/models/families` are found by measuring what
they add to the residual stream ([own models](own_model.md)). `sums` says whether what `interp
activations` stores adds up: `resid_pre` + `attn_out` + `mlp_out` = `resid_post`, and likewise
`resid_mid`; norms or factors on the stream itself prevent it. `gim` needs the names of an MLP's
gates, and sites of heads need the names of the projections.
"""


def page(rows: Sequence[Mapping[str, str]]) -> str:
    """The page for these rows."""
    parts = [HEAD.format(version=transformers.__version__)]
    for kind, title in TITLES.items():
        own = [row for row in rows if row["kind"] == kind]
        if own:
            parts += [f"## {title}\n", *_counts(own), "", *_table(own), ""]
    return "\n".join(parts)


def _counts(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    given = (RIGHT, SOME, GIVEN)
    counts = Counter(name for row in rows for name in MEASUREMENTS if row[name] in given)
    shares = ", ".join(f"{SHORT.get(name, name)} {counts[name]}" for name in MEASUREMENTS)
    yield f"Given for so many of these {len(rows)} types: {shares}."


def _table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    names = [SHORT.get(name, name) for name in MEASUREMENTS]
    yield "| type | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for row in rows:
        marks = [SIGNS.get(row[name], row[name]) for name in MEASUREMENTS]
        yield f"| {row['type']} | " + " | ".join(marks) + " |"
