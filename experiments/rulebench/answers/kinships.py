"""Kinships between two people (CLUTRR and the own set of kinships)."""

import re
from functools import lru_cache

from interp.prompts.answers import Parser, Unanswered
from interp_experiments.rulebench.reading import Found, Ways, read, with_name


def kinship(relative: str, person: str) -> Parser:
    """The parser of "Who is `relative` to `person`?": a kinship, in small letters.

    A kinship between others, a quoted rule and the inverse relation are no answer.
    """

    def declared(text: str) -> Found:
        found = list(_statements(relative, person).finditer(text)) if relative else []
        return _kin(next(filter(None, found[-1].groups()))) if found else None

    def stated(segment: str) -> Found:
        return declared(segment) or _first_kin(segment)

    def opening(text: str) -> Found:
        found = _FIRST_KIN.match(text)
        if found and _ALTERNATIVES.match(text, found.start(1)):
            return Unanswered.UNPARSED
        return _kin(found[1]) if found else None

    ways = Ways(stated, opening, declared, _loose_kin)

    def parse(text: str) -> str | Unanswered:
        return read(text, ways)

    return with_name(parse, f"kinship of {relative} to {person}")


_KIN_WORD = (
    r"\b(?:(?:great|half|step|grand|god)[- ]?)*(?:father|mother|brother|sister|son|daughter|uncle"
    r"|aunt|nephew|niece|cousin|husband|wife|mom|mum|dad|daddy|ma|pa)(?:[- ]in[- ]law)?\b(?!\()"
)
_KIN = re.compile(_KIN_WORD, re.IGNORECASE)
_FIRST_KIN = re.compile(
    rf"(?:(?:the|an?|his|her|their|\w+'s) )?({_KIN_WORD})(?=\W*$|\s*[.,;:!/\n]| (?:of|to|or)\b)",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(
    rf"{_KIN_WORD}(?: or |/)(?:the |an? |his |her )?{_KIN_WORD}", re.IGNORECASE
)
_ALIASES = {
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "daddy": "father",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "granddad": "grandfather",
}
_PERSON = r"(?!(?:He|She|His|Her|The|So|This|That|It)\b)[A-Z][\w-]*"
_ELSEWHERE = re.compile(
    rf"\b(?:has|have|had) (?:an?|the|one|no) (?i:{_KIN_WORD})"
    rf"|\b{_PERSON} is (?:the |an? )?(?i:{_KIN_WORD}) (?:of|to) {_PERSON}"
    rf"|\b{_PERSON} is {_PERSON}'s (?i:{_KIN_WORD})"
    rf"|\b{_PERSON}'s (?i:{_KIN_WORD})(?:,? {_PERSON}| is {_PERSON})"
    rf"|\bnot (?:the |an? |his |her )?(?i:{_KIN_WORD})"
)
"""Kinships that are facts of the story, parts of a rule, or denied."""

_CUT_OFF = re.compile(r"\b(?:is|are|the|an?|and|so|his|her|has|therefore|because|which)$")


@lru_cache(maxsize=4096)
def _statements(relative: str, person: str) -> re.Pattern[str]:
    """Sentences that say what the one is to the other."""
    x, y, kin = rf"\b{re.escape(relative)}\b", rf"\b{re.escape(person)}\b", f"({_KIN_WORD})"
    between = r"(?:(?!\b(?:might|may|could|either|not|if)\b)[^.\n,;:]){0,40}?"
    a = r"(?:(?:also|therefore|thus|indeed|then) )?(?:(?:the|an?|his|her) )?"
    return re.compile(
        rf"{x}{between}\b(?:is|be|becomes) {a}{kin} (?:of|to|for) {y}"
        rf"|{x}{between}\b(?:is|be|becomes) {y}'s {kin}"
        rf"|{y}'s {kin} is {x}|\bthe {kin} of {y} is {x}"
        rf"|{y} has (?:an? )?{kin},? (?:(?:named|called) )?{x}",
        re.IGNORECASE,
    )


def _kin(word: str) -> str:
    """A kinship as the data write it: "Mother in Law" is "mother-in-law"."""
    joined = re.sub(r"[-\s]", "", word.lower())
    base = joined.removesuffix("inlaw")
    return _ALIASES.get(base, base) + ("-in-law" if base != joined else "")


def _loose_kin(text: str) -> Found:
    """The last kinship that is none of the story's own facts, in a text that was not cut off."""
    rest = _ELSEWHERE.sub("", text)
    found = list(_KIN.finditer(rest))
    if not found or _CUT_OFF.search(text.rstrip(" .")):
        return None
    pairs = [pair for pair in _ALTERNATIVES.finditer(rest) if pair.end() >= found[-1].end()]
    return Unanswered.UNPARSED if pairs else _kin(found[-1][0])


def _first_kin(segment: str) -> Found:
    """The first kinship of a segment that is not denied, unless it is one of two."""
    rest = _ELSEWHERE.sub("", segment)
    if _ALTERNATIVES.search(rest):
        return Unanswered.UNPARSED
    match = _KIN.search(rest)
    return _kin(match[0]) if match else None
