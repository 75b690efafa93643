"""Demonstrations: questions with correct answers, shown before the question to be answered.

They are stored in data/demonstrations.json. Those of kinship and StringGame were generated, from a
seed that no question uses, and their rules prove the answers; the others were written by hand.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from interp_experiments.rulebench import items


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its rules, a sentence that derives the answer, and the answer to write."""

    question: str
    golden: items.Rule
    noise: tuple[items.Rule, ...]
    steps: str
    answer: str


@cache
def examples(kind: items.QuestionKind, *, counterfactual: bool) -> Sequence[Example]:
    """The demonstrations for a kind; empty if the version has none."""
    text = (files(__package__) / "data" / "demonstrations.json").read_text(encoding="utf-8")
    name = (items.KINSHIP if kind is items.CLUTRR else kind).name
    made = []
    for one in json.loads(text)[name]:
        if told := one.get("counterfactual" if counterfactual else "factual"):
            rules = told.get("rules", one["rules"])
            golden, *noise = (items.Rule(str(number), rule) for number, rule in enumerate(rules))
            made.append(
                Example(one["question"], golden, tuple(noise), told["steps"], told["answer"])
            )
    return made
