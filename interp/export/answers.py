"""How interp judges answers; exported tasks for other libraries include a copy of this file.

This file requires only Python. A model's answer is the option that has a surface form beginning
with the first token that the model writes. If no option has such a form, or several do, the answer
is wrong.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class JudgedAnswer(NamedTuple):
    """The answer to one prompt."""

    pair: str
    weight: float
    correct: bool


def read_prompts(file: Path) -> list[dict[str, Any]]:
    """The prompts of a task, one JSON object per line."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def answered(token: str, options: Sequence[Mapping[str, Any]]) -> str:
    """The only option with a form that begins with the token; empty if none or several have one."""
    written = token.strip()
    names = [o["name"] for o in options if any(form.startswith(written) for form in o["forms"])]
    return names[0] if written and len(names) == 1 else ""


def judged(token: str, prompt: Mapping[str, Any]) -> JudgedAnswer:
    """Whether the first token that a model writes is the correct answer to a prompt."""
    correct = answered(token, prompt["options"]) == prompt["gold"]
    return JudgedAnswer(prompt["pair_id"], prompt["weight"], correct)


def accuracy(answers: Iterable[Sequence[Any]]) -> float:
    """The weighted share of correctly answered prompts."""
    rows = [JudgedAnswer(*row) for row in answers]
    return sum(r.weight * r.correct for r in rows) / sum(r.weight for r in rows)


def paired_accuracy(answers: Iterable[Sequence[Any]]) -> float:
    """The weighted share of pairs in which all prompts are answered correctly."""
    pairs: dict[str, JudgedAnswer] = {}
    for row in map(JudgedAnswer._make, answers):
        whole = row.correct and pairs.get(row.pair, row).correct
        pairs[row.pair] = row._replace(correct=whole)
    return accuracy(pairs.values())
