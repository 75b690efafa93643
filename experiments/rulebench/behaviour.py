"""Why a model fails: it triggers another rule, or it does not execute the one that fits.

As in Section 4.6 of the paper, with a third class: a text that names no rule is no execution error
of the first rule (the authors' parser counts it as one).
"""

import re
from typing import Literal

from interp_experiments.rulebench.answers.reading import plain

Behaviour = Literal["right", "triggering error", "execution error", "no rule named"]

FAILURES: tuple[Behaviour, ...] = ("triggering error", "execution error", "no rule named")

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    "tenth",
)
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_NAMED = re.compile(
    rf"\b(?P<before>(?:based on|by|using|use|according to|applying|apply|following|follow|under"
    rf"|from|is) (?:the )?)?"
    rf"(?:(?P<ordinal>{'|'.join(_ORDINALS)}|\d+(?:st|nd|rd|th)) rule"
    rf"|rule ?(?:number |no\. ?|id:? ?|#)?(?P<cardinal>\d+|{'|'.join(_CARDINALS)}))\b"
    r"(?P<denied>,? (?:does not|doesn't|do not|cannot|can not|can't|is not|isn't|fails))?"
    r"(?P<after> (?:fits|applies|matches|holds|can be applied|can be used|is the one))?",
    re.IGNORECASE,
)
_APPLIED_ID = re.compile(r"applied ?rule(?: ?id)?:? ?#?(\d+)", re.IGNORECASE)


def named_rule(text: str) -> int | None:
    """The place of the rule that a text applies, from 1; None if it names none, or only several.

    It is the first rule of which the text says that it fits or that it follows from it; or else
    the only one that it mentions. Rules that are said not to fit do not count.
    """
    text = plain(text)
    if found := _APPLIED_ID.search(text):
        return int(found[1])
    mentions = [match for match in _NAMED.finditer(text) if not match["denied"]]
    applied = [match for match in mentions if match["before"] or match["after"]]
    places = [_place(match) for match in applied[:1] or mentions]
    return places[0] if len(set(places)) == 1 else None


def behaviour(text: str, *, correct: bool, golden_place: int) -> Behaviour:
    """How a text deals with its rules.

    Args:
        text: what was generated.
        correct: whether its answer is right; then the rule that it names does not matter.
        golden_place: the place of the golden rule among those that were shown, from 1.
    """
    if correct:
        return "right"
    named = named_rule(text)
    if named is None:
        return "no rule named"
    return "execution error" if named == golden_place else "triggering error"


def _place(match: re.Match[str]) -> int:
    word = (match["ordinal"] or match["cardinal"]).lower()
    for words in (_ORDINALS, _CARDINALS):
        if word in words:
            return words.index(word) + 1
    digits = re.match(r"\d+", word)
    return int(digits[0]) if digits else 0
