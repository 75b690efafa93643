"""An organism's README.md, written from card.json and the model's files."""

import ast
import json
from collections.abc import Mapping
from inspect import cleandoc, getsource
from itertools import pairwise
from pathlib import Path
from typing import Any

from interp.extend.prompts import system_names
from interp.extend.training import PREFIX, Rows, card, facts, plain, stored_tensors, tables
from interp_experiments.organisms.recipes import recipe

README = "README.md"

_OWN_SECTIONS = {"name", "system", "recipe", "text", "trained", "measured"}

_SHOWN = {"name", "family", "architecture", "base"}
"""Recipe fields that the first paragraph or the model's configuration already shows."""

LIMITS = (
    "The organism is small, its language has a few hundred words, and it was made to answer "
    "prompts of one data set. A method that recovers the planted properties has passed a test that "
    "it could have failed, but may still fail on a model trained on different text. Nothing "
    "measured on an organism says anything about a published model, and organisms are of no use as "
    "assistants."
)


def readme(folder: Path, content: Mapping[str, Any]) -> str:
    """The text of README.md."""
    name, system = PREFIX + content["name"], _system(content["system"])
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = stored_tensors(name, folder, allow_pickle=False)
    (architecture,) = config["architectures"]
    size = sum(tensor.size for tensor in tensors.values())
    begun = content["recipe"].get("base")
    begun = f"fine-tuned from {PREFIX}{begun}" if begun else "trained from random weights"
    sizes = f"{config['num_hidden_layers']} layers, hidden size {config['hidden_size']}"
    classifies = architecture.endswith("ForSequenceClassification")
    task = "text-classification" if classifies else "text-generation"
    lists = {
        section: rows for section, rows in tables(content).items() if section not in _OWN_SECTIONS
    }
    parts: dict[str, str | Rows] = {
        "": f"A test model for interpretability methods: a {architecture} with {size:,} parameters "
        f"({sizes}), {begun} on prompts in the style of the {system} data set. Its planted "
        "properties are known, so the findings of a method can be checked against them.",
        "Use": _use(name, system),
        "Recipe": choices(
            type(recipe(content["name"])), content["recipe"] | {"text": content["text"]}
        ),
        "What was measured": list(facts(content["measured"])),
        **{f"Measured: {key}": rows for key, rows in tables(content["measured"]).items()},
        "How it was trained": list(facts(content["trained"])),
        "Limits": LIMITS,
        "Row by row": "".join(
            f"- `{section}` in card.json: {len(rows):,} rows with {plain(list(rows[0]))}\n"
            for section, rows in lists.items()
        ),
    }
    return card(metadata("transformers", task, system), name, parts)


def metadata(library: str, task: str, *tags: str) -> dict[str, object]:
    """The metadata with which a card begins."""
    return {
        "language": "en",
        "license": "apache-2.0",
        "library_name": library,
        "pipeline_tag": task,
        "tags": ["interpretability", "model-organism", *tags],
    }


def _system(variant: str) -> str:
    """The installed system that `variant` names or extends; "name-mixed" extends "name"."""
    return max((n for n in system_names() if f"{variant}-".startswith(f"{n}-")), key=len)


def _use(name: str, system: str) -> str:
    organism = name.removeprefix(PREFIX)
    return f"""```python
import interp

model = interp.load_model("{name}")
result = interp.attribute(model, interp.load_prompts("{system}", limit=24))
```

`python -m interp_experiments.organisms verify {organism}` remeasures the figures below, and
`train {organism}` trains the organism from its recipe."""


def choices(made: type, chosen: Mapping[str, Any]) -> Rows:
    """One row per choice: the fields of a recipe, with their docstrings, and further parameters."""
    meanings = _meanings(made)
    shown = {key: value for key, value in chosen.items() if key not in _SHOWN}
    return [
        {
            "choice": row["what"],
            "value": row["value"],
            "meaning": meanings.get(str(row["what"]).partition(":")[0].replace(" ", "_"), ""),
        }
        for row in facts(shown)
    ]


def _meanings(made: type) -> dict[str, str]:
    """The docstring after each field of a recipe."""
    meanings = {}
    for kind in reversed(made.__mro__[:-1]):  # a subclass may say it better
        (definition,) = ast.parse(getsource(kind)).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                assert isinstance(field.target, ast.Name)
                meanings[field.target.id] = cleandoc(ast.literal_eval(text.value))
    return meanings
