"""Letters of options (DEER, TheoremQA)."""

import re

from interp.prompts.answers import Unanswered
from interp_experiments.rulebench.reading import Found, Ways, nothing, one_of, read


def letter(text: str) -> str | Unanswered:
    """The parser of DEER and TheoremQA: the letter of an option, in small letters."""
    return read(text, Ways(_stated_letter, _opening_letter, nothing, _loose_letter))


_STATED_LETTER = re.compile(
    r"(?:option |choice )?\(?(?:([B-D])\b|([a-dA])(?=\s*(?:[).:,;]|$|because\b|since\b|as\b)))",
)
_OPENING_LETTER = re.compile(r"\(?([a-d])(?=[).:,]|\s*$|\s*\n)", re.IGNORECASE)
_LOOSE_LETTER = re.compile(r"\b(?i:option|choice) ([a-dA-D])\b|(?<!\w)\(?([A-D])[).](?=\s|$)")
_EITHER_LETTER = re.compile(r"\(?\b[a-d]\b\)?(?: or | and |/)(?:option )?\(?[a-d]\b", re.IGNORECASE)


def _stated_letter(segment: str) -> Found:
    if _EITHER_LETTER.match(segment):
        return Unanswered.UNPARSED
    found = _STATED_LETTER.match(segment)
    return (found[1] or found[2]).lower() if found else None


def _opening_letter(text: str) -> Found:
    found = _OPENING_LETTER.match(text)
    return _loose_letter(text) or found[1].lower() if found else None


def _loose_letter(text: str) -> Found:
    return one_of([(one or other).lower() for one, other in _LOOSE_LETTER.findall(text)])
