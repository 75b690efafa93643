"""Which rule an answer follows that was given at once, without a chain of thought.

Such a text names no rule, but of kinship and StringGame each rule says what it would answer. An
answer that a noise rule gives is a triggering error, any other wrong one an execution error. Rules
of the other sets do not say their answers in a form that can be compared.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pandas as pd

from interp_experiments.rulebench.kinds import CLUTRR, KINSHIP, STRING_GAME
from interp_experiments.rulebench.string_rules import StringRule, string_rules

RIGHT, TRIGGERING, EXECUTION = "right", "triggering error", "execution error"

OUTCOMES = (RIGHT, TRIGGERING, EXECUTION, "wrong", "no answer")
"""A wrong answer is neither error where the set's rules do not say what they answer."""

_CONCLUSION = re.compile(r"\bis the ([\w-]+) of \w+\W*$")


def followed(prompt: pd.Series, answer: str, *, correct: bool) -> str:
    """One of `OUTCOMES`.

    Args:
        prompt: its row of the prompts table.
        answer: what the parser found in the text; empty if it found nothing.
        correct: whether it is the golden rule's.
    """
    if correct:
        return RIGHT
    if not answer:
        return "no answer"
    answers = [_answer(prompt, rule) for rule in _noise(prompt)]
    if None in answers:
        return "wrong"
    return TRIGGERING if answer in answers else EXECUTION


def _noise(prompt: pd.Series) -> Iterator[str]:
    """The texts of the noise rules."""
    number = 1
    while pd.notna(start := prompt.get(f"noise{number}_start")):
        yield prompt["text"][int(start) : int(prompt[f"noise{number}_end"])]
        number += 1


def _answer(prompt: pd.Series, rule: str) -> str | None:
    """What one answers who follows a rule, whether it fits or not; None where it is not known.

    A rule of StringGame without a number for the string is followed by no answer.
    """
    if prompt["set"] in (KINSHIP.name, CLUTRR.name):
        found = _CONCLUSION.search(rule)
        return found[1] if found else None
    if prompt["set"] == STRING_GAME.name:
        known = _by_text().get(rule)
        return None if known is None else str(known.action.result(prompt["string"]))
    return None


@cache
def _by_text() -> Mapping[str, StringRule]:
    return {rule.rule.natural: rule for rule in string_rules().values()}
