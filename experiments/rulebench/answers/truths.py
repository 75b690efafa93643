"""Truth values and abstentions (ULogic)."""

import re

from interp.prompts.answers import Unanswered
from interp_experiments.rulebench.reading import Found, Ways, nothing, read


def truth(text: str) -> str | Unanswered:
    """The parser of ULogic: "true", "false" or an abstention such as "notsure"; yes is true."""
    return read(text, Ways(_stated_truth, _opening_truth, nothing, _loose_truth))


_ABSTENTION = (
    r"can ?not ?judge|not ?sure|can ?not ?entail|lack ?of ?evidence|need ?more ?info(?:rmation)?"
)
_TRUTH = re.compile(rf"\b(true|false|yes|no|{_ABSTENTION})\b", re.IGNORECASE)
_OPENING_TRUTH = re.compile(
    rf"(?:true|false|yes|no|{_ABSTENTION})(?=\s*(?:[.,;:!/\n]|$|or\b))", re.IGNORECASE
)
_LOOSE_TRUTH = re.compile(r"(?<!not )\b(true|false)\b", re.IGNORECASE)
_EITHER_TRUTH = re.compile(r"\b(?:true|yes) ?(?:n?or|/) ?(?:false|no)\b", re.IGNORECASE)


def _truth_of(word: str) -> str:
    return {"yes": "true", "no": "false"}.get(word.lower(), re.sub(r"\s", "", word.lower()))


def _stated_truth(segment: str) -> Found:
    if _EITHER_TRUTH.search(segment):
        return Unanswered.UNPARSED
    found = _TRUTH.search(segment)
    return _truth_of(found[0]) if found else None


def _opening_truth(text: str) -> Found:
    if _EITHER_TRUTH.match(text):
        return Unanswered.UNPARSED
    found = _OPENING_TRUTH.match(text)
    return _truth_of(found[0]) if found else None


def _loose_truth(text: str) -> Found:
    found = _LOOSE_TRUTH.findall(text)
    if _EITHER_TRUTH.search(text):
        return Unanswered.UNPARSED
    return str(found[-1]).lower() if found else None
