"""The page of questions: what `interp --help` shows, and the command that answers a question."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from interp.cli.parser import program

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "evaluate": "is the model right?",
        "effects": "which part of the prompt decides its answers?",
        "attribute": "to which part does an attribution method point?",
    },
    "Look inside": {
        "patch": "where inside does the difference between two prompts become the answer?",
        "lens": "which words does each layer make the model likely to say?",
        "probe": "does the model know the fact?",
    },
    "Trust": {
        "faithfulness": "which attribution method is right about this model?",
        "compare": "do two models differ on the same prompts?",
    },
    "Run and read": {
        "validate": "is my table of pairs in order?",
        "report": "where is the page about what I measured?",
    },
}
"""The ten commands to begin with, each with the question that it answers."""


class Question(NamedTuple):
    """A row of the table of questions; that of docs/agents.md has the same, and what to read."""

    asks: str
    call: str
    """What answers it, in Markdown."""
    words: str
    """Further words by which the question is found."""


QUESTIONS = tuple(
    Question(*line.split(" | "))
    for line in Path(__file__).with_name("questions.txt").read_text("utf-8").splitlines()
)

_COMMON = """a an and are at be can do does for from how i in is it its me model my of on or that
the this to what when where which who why with interp"""


def overview(names: Iterable[str]) -> str:
    """What `interp --help` shows, given the names of all commands."""
    lines = ["Which question do you have about a language model?"]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:14}{asks}" for name, asks in commands.items())]
    first = {name for commands in GROUPS.values() for name in commands}
    others = ", ".join(name for name in names if name not in first)
    lines += [
        "",
        f"also: {others}",
        "",
        f'{program()} help "QUESTION": the command for a question in your own words',
        f"{program()} help all: every command; --version: the version",
        f"{program()} COMMAND --help: its first options and examples; --help-all: all options",
    ]
    return "\n".join(lines) + "\n"


def _stems(text: str) -> set[str]:
    """The beginnings of the words of a text."""
    return {word.rstrip("sy")[:5] for word in re.findall(r"[a-z0-9]+", text.lower())}


def found(question: str) -> list[Question]:
    """The questions of the table that share words with one, the best first, at most three.

    A word counts the more, the fewer questions of the table have it.
    """
    # Names of values, such as DIR, are words of no question.
    calls = [re.sub(r"\b[A-Z]+\b", "", row.call) for row in QUESTIONS]
    stems = [
        _stems(f"{row.asks} {call} {row.words}") for row, call in zip(QUESTIONS, calls, strict=True)
    ]
    often = Counter(stem for row_stems in stems for stem in row_stems)
    asked = _stems(question) - _stems(_COMMON)
    scores = [sum(1 / often[stem] for stem in row_stems & asked) for row_stems in stems]
    order = sorted(range(len(QUESTIONS)), key=lambda place: -scores[place])
    return [QUESTIONS[place] for place in order[:3] if scores[place] > max(scores) / 2]
