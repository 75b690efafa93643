"""Numbers, in figures or words (StringGame)."""

import re

from interp.prompts.answers import Unanswered
from interp_experiments.rulebench.reading import Found, Ways, nothing, read


def number(text: str) -> str | Unanswered:
    """The parser of StringGame: a number, without a point where it is whole."""
    return read(text, Ways(_stated_number, _opening_number, nothing, _loose_number))


_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_NUMBER = r"\b(?:\d+(?:\.\d+)?|" + "|".join(_WORDS) + r")\b"
_FIRST_NUMBER = re.compile(_NUMBER, re.IGNORECASE)
_OPENING_NUMBER = re.compile(rf"({_NUMBER})(?=\s*$|\s*\n|[.,;!](?:\s(?!If\b)|$))", re.IGNORECASE)
_EITHER_NUMBER = re.compile(rf"{_NUMBER}(?: or |/){_NUMBER}", re.IGNORECASE)
_GIVEN_NUMBER = re.compile(
    r"(?:\bis|=|\bgives|\bequals|\boutputs?|\breturns)\s*:?\s*(\d+(?:\.\d+)?)\b", re.IGNORECASE
)
_RULE_NUMBER = re.compile(r"\brules? #?\d+|^\s*\d+[.)]\s", re.IGNORECASE | re.MULTILINE)


def _number_of(word: str) -> str:
    if word.lower() in _WORDS:
        return str(_WORDS.index(word.lower()))
    whole, _, fraction = word.partition(".")
    return word if fraction.strip("0") else str(int(whole))


def _stated_number(segment: str) -> Found:
    if _EITHER_NUMBER.search(segment):
        return Unanswered.UNPARSED
    found = _FIRST_NUMBER.search(segment.rpartition("=")[2])
    return _number_of(found[0]) if found else None


def _opening_number(text: str) -> Found:
    found = _OPENING_NUMBER.match(text)
    return _number_of(found[1]) if found else None


def _loose_number(text: str) -> Found:
    text = _RULE_NUMBER.sub("", text)
    given = _GIVEN_NUMBER.findall(text)
    return _number_of(given[-1]) if given else None
