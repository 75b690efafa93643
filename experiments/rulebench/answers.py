"""Find the answer in a generated text, with a parser for each kind of question."""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

from interp.prompts.answers import Parser, Unanswered
from interp_experiments.rulebench.items import (
    CAIL,
    CATEGORIES,
    CLUTRR,
    KINSHIP,
    SALAD,
    STRING_GAME,
    ULOGIC,
    Item,
    Kind,
)
from interp_experiments.rulebench.reading import Found, Ways, known_as, nothing, one_of, read


def parser_of(kind: Kind, item: Item, labels: Sequence[str]) -> Parser:
    """The parser for answers to an item.

    Args:
        kind: the kind of the item's set.
        item: the item; questions about kinship name two people, whom the parser needs.
        labels: the correct answers in the set; for CAIL2018, the charges to look for.
    """
    if kind in (CLUTRR, KINSHIP):
        names = _ASKED.search(item.question)
        return kinship(names[1], names[2]) if names else kinship("", "")
    if kind is CAIL:
        return charge(tuple(labels))
    return {ULOGIC: truth, SALAD: category, STRING_GAME: number}.get(kind, letter)


_ASKED = re.compile(r"Who is \[?([\w.'-]+)\]? to \[?([\w.'-]+?)\]?\?")


def kinship(relative: str, person: str) -> Parser:
    """The parser for "Who is `relative` to `person`?"; it returns a kinship in lower case.

    Kinships between other people, in quoted rules, or in the inverse direction do not count.
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

    @known_as(f"kinships.kinship of {relative} to {person}")
    def parse(text: str) -> str | Unanswered:
        return read(text, ways)

    return parse


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
"""Kinships that do not count: facts from the story, parts of a rule, and denied kinships."""

_CUT_OFF = re.compile(r"\b(?:is|are|the|an?|and|so|his|her|has|therefore|because|which)$")


@lru_cache(maxsize=4096)
def _statements(relative: str, person: str) -> re.Pattern[str]:
    """Sentences that say what `relative` is to `person`."""
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
    """A kinship as the data write it: "Mother in Law" becomes "mother-in-law"."""
    joined = re.sub(r"[-\s]", "", word.lower())
    base = joined.removesuffix("inlaw")
    return _ALIASES.get(base, base) + ("-in-law" if base != joined else "")


def _loose_kin(text: str) -> Found:
    """The last kinship that is not a story fact; None if none is left or the text was cut off."""
    rest = _ELSEWHERE.sub("", text)
    found = list(_KIN.finditer(rest))
    if not found or _CUT_OFF.search(text.rstrip(" .")):
        return None
    pairs = [pair for pair in _ALTERNATIVES.finditer(rest) if pair.end() >= found[-1].end()]
    return Unanswered.UNPARSED if pairs else _kin(found[-1][0])


def _first_kin(segment: str) -> Found:
    """A segment's first kinship that is not denied; unparsed if the segment offers alternatives."""
    rest = _ELSEWHERE.sub("", segment)
    if _ALTERNATIVES.search(rest):
        return Unanswered.UNPARSED
    match = _KIN.search(rest)
    return _kin(match[0]) if match else None


@known_as("numbers.number")
def number(text: str) -> str | Unanswered:
    """The parser for StringGame; returns a number, without a decimal point if it is whole."""
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


@known_as("letters.letter")
def letter(text: str) -> str | Unanswered:
    """The parser for DEER and TheoremQA; returns the letter of an option, in lower case."""
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


@known_as("truths.truth")
def truth(text: str) -> str | Unanswered:
    """The parser for ULogic; returns "true", "false" or an abstention; "yes" means "true"."""
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


@known_as("categories.category")
def category(text: str) -> str | Unanswered:
    """The parser for SALAD; returns one of "o1" to "o6", also for the name of a category."""
    return read(text, Ways(_stated_category, nothing, nothing, _last_category))


_CATEGORY = re.compile(
    r"\bO ?([1-6])\b|" + "|".join(f"({re.escape(name)})" for name in CATEGORIES.values()),
    re.IGNORECASE,
)


def _categories(text: str) -> list[str]:
    names = {name.lower(): id_ for id_, name in CATEGORIES.items()}
    return [
        f"o{found[1]}" if found[1] else names[found[0].lower()]
        for found in _CATEGORY.finditer(text)
    ]


def _stated_category(segment: str) -> Found:
    found = _categories(segment)
    if re.search(r"\bor\b|/", segment, re.IGNORECASE):
        return one_of(found)
    return found[0] if found else None


def _last_category(text: str) -> Found:
    found = _categories(text)
    return found[-1] if found else None


def charge(labels: tuple[str, ...]) -> Parser:
    """The parser for CAIL2018; it returns one of the set's charges.

    Neither a charge within the name of a longer charge nor a denied charge counts.
    """
    longest_first = sorted(labels, key=lambda label: (-len(label), label))
    names = re.compile(rf"(?<!不构成)({'|'.join(map(re.escape, longest_first))})")

    def one(text: str) -> Found:
        return one_of(names.findall(text))

    ways = Ways(one, nothing, nothing, one)

    # A digest keeps the name short: there can be hundreds of labels.
    digest = hashlib.sha256("\n".join(longest_first).encode()).hexdigest()[:16]

    @known_as(f"charges.charge among {digest}")
    def parse(text: str) -> str | Unanswered:
        return read(text, ways)

    return parse
