"""Systems with answers other than yes and no: three options, a number in a text, classes."""

import re
from dataclasses import replace

from interp.prompts.answers import AnswerOption, Choice, FreeText, Label, Unanswered
from interp.prompts.prompt import Prompt, compose
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import System

TRUE, FALSE, UNKNOWN = (AnswerOption(name, (name,)) for name in ("True", "False", "Unknown"))

VARIANTS = {
    "base": ("Anne is tall.", "True"),
    "negated": ("Anne is not tall.", "False"),
    "other": ("Bob is tall.", "Unknown"),
}
"""Facts for the statement that Anne is tall: a group of a base and its variants."""


def ask(number, side, fact, question, answer):
    text, segments = compose([("fact", fact), (None, "\n"), ("question", question)])
    id_ = f"theory {number}"
    return Prompt(f"{id_}/{side}", text, segments, answer, id_, side, {"fact": side})


def statements(number):
    """One theory: the statement after each of its facts, as a choice among three."""
    return [
        ask(
            number,
            side,
            fact.replace("tall", ("tall", "kind", "round", "quiet")[number]),
            "Is Anne so? True, False or Unknown?",
            Choice((TRUE, FALSE, UNKNOWN), gold=gold),
        )
        for side, (fact, gold) in VARIANTS.items()
    ]


def number_in(text: str) -> str | Unanswered:
    """The number after "answer is"."""
    if "cannot" in text:
        return Unanswered.REFUSED
    found = re.search(r"answer is (\d+)", text)
    return found[1] if found else Unanswered.UNPARSED


class Made(System):
    """A system of given prompts."""

    def __init__(self, name, prompts):
        self._name, self._made = name, prompts

    def prompts(self, *, seed, data):
        sides = tuple(dict.fromkeys(prompt.side for prompt in self._made))
        numbers = range(len(self._made))
        return PromptSet(self._name, sides, ("fact",), self._made.__getitem__, numbers, seed)


THEORIES = [prompt for number in range(4) for prompt in statements(number)]

three_options = Made("three-options", THEORIES)

classes = Made(
    "classes",
    [replace(p, answer=Label(("True", "False", "Unknown"), p.answer.gold)) for p in THEORIES],
)

numbers = Made(
    "numbers",
    [
        ask(a, "sum", f"Anne has {a} and {7 - a}.", "How many?", FreeText(("7",), number_in))
        for a in range(4)
    ],
)
