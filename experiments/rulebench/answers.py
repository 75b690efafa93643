"""Find the answer in a generated text, with a parser for each kind of question."""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

from interp.extend.prompts import Parser, Unanswered
from interp_experiments.rulebench import items
from interp_experiments.rulebench.denials import Found, first_given, given, last_given
from interp_experiments.rulebench.numbers import is_part, numbers_in, with_minus, written
from interp_experiments.rulebench.reading import Ways, one_of, read


def parser_of(kind: items.QuestionKind, item: items.Item, labels: Sequence[str]) -> Parser:
    """The parser for answers to an item; `labels` are the charges to look for (CAIL2018)."""
    if kind in (items.CLUTRR, items.KINSHIP):
        names = _ASKED.search(item.question)
        return kinship(names[1], names[2]) if names else kinship("", "")
    if kind is items.CAIL:
        return charge(tuple(labels))
    return {items.ULOGIC: truth, items.SALAD: category, items.STRING_GAME: number}.get(kind, letter)


def _parser(name: str, ways: Ways) -> Parser:
    """A parser with a name that does not depend on its module, for the hash of the data."""

    def parse(text: str) -> str | Unanswered:
        return read(text, ways)

    parse.__qualname__ = name
    return parse


_ASKED = re.compile(r"Who is \[?([\w.'-]+)\]? to \[?([\w.'-]+?)\]?\?")


def kinship(relative: str, person: str) -> Parser:
    """The parser for "Who is `relative` to `person`?"; it returns a kinship in lower case.

    Kinships between other people, in quoted rules, or in the inverse direction do not count.
    """

    def declared(text: str) -> Found:
        claims = list(_statements(relative, person).finditer(text)) if relative else []
        sure = [one for one in given(text, claims) if not _SUPPOSED.search(text[: one.start()])]
        return _kin(next(filter(None, sure[-1].groups()))) if sure else None

    def stated(segment: str) -> Found:
        rest = _ELSEWHERE.sub("", segment)
        through = Unanswered.UNPARSED if _THROUGH.search(rest) else None
        return declared(segment) or through or first_given(rest, list(_KIN.finditer(rest)), _kin_of)

    def opening(text: str) -> Found:
        if not _FIRST_KIN.match(text):
            return None
        return first_given(text, list(_KIN.finditer(text)), _kin_of)

    ways = Ways(stated, _loose_kin, opening, declared, _KIN.finditer, _kin_of)
    return _parser(f"kinships.kinship of {relative} to {person}", ways)


_KIN_WORD = (
    r"\b(?:(?:great|half|step|grand|god)[- ]?)*(?:father|mother|brother|sister|son|daughter|uncle"
    r"|aunt|nephew|niece|cousin|husband|wife|mom|mum|dad|daddy|ma|pa)(?:[- ]in[- ]law)?\b"
    r"(?!\(|-|'s\s*\Z|[ ]in\s*\Z)"  # a predicate, or a word that was cut off
)
_KIN = re.compile(_KIN_WORD, re.IGNORECASE)
_FIRST_KIN = re.compile(
    rf"(?:(?:the|an?|his|her|their|\w+'s) )?({_KIN_WORD})(?=\W*$|\s*[.,;:!/\n]| (?:of|to|or)\b)",
    re.IGNORECASE,
)
_THROUGH = re.compile(
    rf"{_KIN_WORD}(?:'s| (?:of|to) (?:the|his|her|their|\w+'s)) (?:\w+ )?{_KIN_WORD}"
    r"|\b(?:ex|foster|adoptive|adopted|former)[- ]" + _KIN_WORD,
    re.IGNORECASE,
)
"""A kinship through another person, such as "his father's brother", or one that is no kinship."""

_SUPPOSED = re.compile(
    r"\b(?:if|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|even though) (?:that )?\Z",
    re.IGNORECASE,
)
_ALIASES = {
    **dict.fromkeys(("mom", "mum"), "mother"),
    **dict.fromkeys(("dad", "daddy"), "father"),
    "grandma": "grandmother",
    **dict.fromkeys(("grandpa", "granddad"), "grandfather"),
}
_PERSON = r"(?!(?:He|She|His|Her|The|So|This|That|It)\b)[A-Z][\w-]*"
_ELSEWHERE = re.compile(
    rf"\b(?:has|have|had) (?:an?|the|one|no) (?i:{_KIN_WORD})"
    rf"|\b{_PERSON} is (?:the |an? )?(?i:{_KIN_WORD}) (?:of|to) {_PERSON}"
    rf"|\b{_PERSON} is {_PERSON}'s (?i:{_KIN_WORD})"
    rf"|\b{_PERSON}'s (?i:{_KIN_WORD})(?:,? {_PERSON}| is {_PERSON})"
)
"""Kinships that do not count: facts from the story, and parts of a rule."""


@lru_cache(maxsize=4096)
def _statements(relative: str, person: str) -> re.Pattern[str]:
    """Sentences that say what `relative` is to `person`."""
    x, y, kin = rf"\b{re.escape(relative)}\b", rf"\b{re.escape(person)}\b", f"({_KIN_WORD})"
    between = (
        r"(?:(?!\b(?:might|may|could|either|neither|not|never|cannot|hardly|unlikely|if)\b|n't\b)"
        r"[^.\n,;:]){0,40}?"
    )
    a = r"(?:(?:also|therefore|thus|indeed|then) )?(?:(?:the|an?|his|her) )?"
    return re.compile(
        rf"{x}{between}\b(?:is|be|becomes) {a}{kin} (?:of|to|for) {y}(?!'s)"
        rf"|{x}{between}\b(?:is|be|becomes) {y}'s {kin}(?!'s)"
        rf"|{y}'s {kin} is {x}|\bthe {kin} of {y} is {x}"
        rf"|{y} has (?:an? )?{kin},? (?:(?:named|called) )?{x}",
        re.IGNORECASE,
    )


def _kin(word: str) -> str:
    joined = re.sub(r"[-\s]", "", word.lower())
    base = joined.removesuffix("inlaw")
    return _ALIASES.get(base, base) + ("-in-law" if base != joined else "")


def _kin_of(word: re.Match[str]) -> str:
    return _kin(word[0])


def _loose_kin(text: str) -> Found:
    """The last kinship that is neither denied nor a story fact; None if none is left."""
    rest = _ELSEWHERE.sub("", text)
    kinships, passed = list(_KIN.finditer(text)), list(_THROUGH.finditer(text))
    if passed and passed[-1].end() >= kinships[-1].end():
        return Unanswered.UNPARSED
    return last_given(rest, list(_KIN.finditer(rest)), _kin_of)


def _later_numbers(text: str) -> Sequence[re.Match[str]]:
    """All numbers; none if the text ends with its first one, since those between lead to it."""
    numbers = numbers_in(with_minus(text))
    return numbers if len({written(one) for one in (*numbers[:1], *numbers[-1:])}) > 1 else ()


_RULE_NUMBER = re.compile(
    r"\brules? #?\d+|^\s*\d+[.)]\s|\b\d+(?:st|nd|rd|th)\b", re.IGNORECASE | re.MULTILINE
)
_GIVEN = re.compile(
    r"(?:\bis|=|\bgives|\bequals|\boutputs?|\breturns)\s*:?\s*(?=[-+]?\.?\d|[a-z])", re.IGNORECASE
)


def _stated_number(segment: str) -> Found:
    text = _RULE_NUMBER.sub("", with_minus(segment)).rpartition("=")[2]
    numbers = numbers_in(text)
    if any(map(str.isdigit, text[: numbers[0].start()] if numbers else text)):
        return Unanswered.UNPARSED  # digits that are no number, such as "1,0"
    return _whole_number(text, numbers)


def _opening_number(text: str) -> Found:
    text = with_minus(text)
    numbers = numbers_in(text)
    if (
        not numbers
        or text[: numbers[0].start()].strip("(")
        or not _OPENING_END.match(text, numbers[0].end())
    ):
        return None
    return _whole_number(text, numbers)


_OPENING_END = re.compile(r"\)?\s*$|\s*\n|[.,;!](?:\s(?!If\b)|$)")


def _loose_number(text: str) -> Found:
    text = _RULE_NUMBER.sub("", with_minus(text))
    numbers = {match.start(): match for match in numbers_in(text)}
    places = [match.end() for match in _GIVEN.finditer(text)]
    places = [at for at in places if at in numbers or not text[at].isalpha()]
    if not places:
        return None
    following = [match for at, match in numbers.items() if at >= places[-1]]
    return _whole_number(text, following) if places[-1] in numbers else Unanswered.UNPARSED


def _whole_number(text: str, numbers: Sequence[re.Match[str]]) -> Found:
    """The first number that is neither denied nor a part, such as of a sum or a range."""
    left = given(text, numbers)
    if left and is_part(text, left[0]):
        return Unanswered.UNPARSED
    return first_given(text, numbers, written)


number = _parser(
    "numbers.number",
    Ways(_stated_number, _loose_number, _opening_number, named=_later_numbers, value=written),
)
"""The parser for StringGame; returns a number, without a decimal point if it is whole."""

_LETTER = re.compile(
    r"(?:\b(?i:option|choice) )?\(?\b(?:([B-D])\b(?![+#^]|-\w|'s)"
    r"|([a-dA])(?=\s*(?:[).:,;/|&?]|$|\n|(?:or|and|because|since|as|is|isn't|cannot|can't)\b)))"
)
_LEAD = re.compile(
    r"(?:\b(?:the|option|choice|letter|answer|either|both|not|neither|none|of|any|all|but|only|\w+ly)\b"
    r"|[\s(¬~!:])*",
    re.IGNORECASE,
)
_OPENING_LETTER = re.compile(r"\(?([a-d])(?=[).:,]|\s*$|\s*\n)", re.IGNORECASE)
_LOOSE_LETTER = re.compile(
    r"\b(?i:option|choice) ([a-dA-D])\b(?![+#^]|-\w)|(?<!\w)\(?([A-D])[).](?=[\s,;/]|$)"
)
_ALSO_LETTER = re.compile(
    r"[).]?\s*(?:(?:,|and|&|\+)\s*(?:option |choice )?\(?[b-dB-D]\b|n?or\b|/|\|)", re.IGNORECASE
)
_LETTER_OR = re.compile(r"\b[A-D][).]? ?(?:,? ?(?:n?or|and) (?:option |choice )?|[/|&] ?)\Z")


def _letter_of(option: re.Match[str]) -> str:
    return str(option[1] or option[2]).lower()


def _stated_letter(segment: str) -> Found:
    letters = list(_LETTER.finditer(segment))
    if not letters or not _LEAD.fullmatch(segment, 0, letters[0].start()):
        return None
    return first_given(segment, letters, _letter_of)


def _opening_letter(text: str) -> Found:
    opening = _OPENING_LETTER.match(text)
    if not opening:
        return None
    line = text.partition("\n")[0]
    return _loose_letter(text) or first_given(line, list(_LETTER.finditer(line)), _letter_of)


def _loose_letter(text: str) -> Found:
    letters = list(_LOOSE_LETTER.finditer(text))
    left = given(text, letters)
    if any(
        _ALSO_LETTER.match(text, one.end()) or _LETTER_OR.search(text[: one.start()])
        for one in left
    ):
        return Unanswered.UNPARSED
    return one_of([_letter_of(one) for one in left]) or (Unanswered.UNPARSED if letters else None)


letter = _parser(
    "letters.letter",
    Ways(
        *(_stated_letter, _loose_letter, _opening_letter),
        named=_LETTER.finditer,
        value=_letter_of,
    ),
)
"""The parser for DEER and TheoremQA; returns the letter of an option, in lower case."""

_ABSTENTION = (
    r"can ?not ?judge|not ?sure|can ?not ?entail|lack ?of ?evidence|need ?more ?info(?:rmation)?"
)
_NO_ANSWER = r"(?! (?:doubt|question|reason|longer|matter|wonder|problem|way|one|such|evidence)\b)"
_TRUTH = re.compile(rf"\b(true|false|yes|no\b{_NO_ANSWER}|{_ABSTENTION})\b", re.IGNORECASE)
_LATER_NO = re.compile(r"no\b(?! *(?:[.,;:!/]|$|or\b|because\b|since\b))", re.IGNORECASE)
_OPENING_TRUTH = re.compile(
    rf"(?:true|false|yes|no|{_ABSTENTION})(?=\s*(?:[.,;:!/|&\n]|$|(?:or|and)\b))", re.IGNORECASE
)
_LOOSE_TRUTH = re.compile(r"\b(true|false)\b", re.IGNORECASE)
_HYPOTHETICAL = re.compile(
    r"\b(?:if|whether|unless|might|may|could|suppos\w+|assum\w+|either)\b[^.;\n]*\Z", re.IGNORECASE
)


def _truth_of(verdict: re.Match[str]) -> str:
    word = re.sub(r"\s", "", verdict[0].lower())
    return {"yes": "true", "no": "false"}.get(word, word)


def _stated_truth(segment: str) -> Found:
    words = list(_TRUTH.finditer(segment))
    # "no" within a sentence is an article, as in "there is no such rule".
    verdicts = [one for one in words if not (one.start() and _LATER_NO.match(segment, one.start()))]
    return first_given(segment, verdicts, _truth_of)


def _opening_truth(text: str) -> Found:
    if not _OPENING_TRUTH.match(text):
        return None
    return first_given(text, list(_TRUTH.finditer(text)), _truth_of)


def _loose_truth(text: str) -> Found:
    words = list(_LOOSE_TRUTH.finditer(text))
    sure = [one for one in words if not _HYPOTHETICAL.search(text[: one.start()])]
    return last_given(text, sure, _truth_of)


truth = _parser(
    "truths.truth",
    Ways(_stated_truth, _loose_truth, _opening_truth, named=_TRUTH.finditer, value=_truth_of),
)
"""The parser for ULogic; returns "true", "false" or an abstention; "yes" means "true"."""

_CATEGORY = re.compile(
    r"\bO ?([1-6])\b|" + "|".join(f"({re.escape(name)})" for name in items.CATEGORIES.values()),
    re.IGNORECASE,
)


def _category_of(mention: re.Match[str]) -> str:
    names = {name.lower(): id_ for id_, name in items.CATEGORIES.items()}
    return f"o{mention[1]}" if mention[1] else names[mention[0].lower()]


category = _parser(
    "categories.category",
    Ways(
        lambda segment: first_given(segment, list(_CATEGORY.finditer(segment)), _category_of),
        lambda text: last_given(text, list(_CATEGORY.finditer(text)), _category_of),
        named=_CATEGORY.finditer,
        value=_category_of,
    ),
)
"""The parser for SALAD; returns one of "o1" to "o6", also for the name of a category."""

_NOT = "不构成 不是 不属于 并非 而非 不能认定为 不应认定为 不成立 未犯 没有犯 不能定"
_CHARGE_DENIED = "".join(
    f"(?<!{words}{link})" for words in _NOT.split() for link in ("", "“", "犯")
)


def charge(labels: tuple[str, ...]) -> Parser:
    """The parser for CAIL2018; it returns one of the set's charges.

    Neither a charge within the name of a longer charge nor a denied charge counts.
    """
    longest_first = sorted(labels, key=lambda label: (-len(label), label))
    names = re.compile(rf"{_CHARGE_DENIED}({'|'.join(map(re.escape, longest_first))})")

    def one(text: str) -> Found:
        return one_of(names.findall(text))

    # A digest keeps the name short: there can be hundreds of labels.
    digest = hashlib.sha256("\n".join(longest_first).encode()).hexdigest()[:16]
    return _parser(f"charges.charge among {digest}", Ways(one, one))
