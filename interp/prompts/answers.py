"""Kinds of answers that prompts require: a choice, a class, free text or a completion.

Values that would lead to wrong measurements raise a UserError when an answer is created.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import combinations
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from interp.errors import UserError, described, shortened
from interp.lookalikes import unseen
from interp.prompts.beginnings import only_option_named, option_at_start
from interp.prompts.marks import marked_answer

Needs = Literal["next-token logits", "class logits", "generated text"]


class Unanswered(StrEnum):
    """Reasons why a generated text has no answer, which a parser returns in place of a string."""

    UNPARSED = "unparsed"
    """The text contains no answer in the requested form."""
    REFUSED = "refused"
    """The model declines to answer."""


class Judgement(NamedTuple):
    """The answer in a generated text."""

    outcome: Literal["answered", "unparsed", "refused"]
    answer: str
    """The answer; empty unless the outcome is "answered"."""
    correct: bool


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """One answer and the ways of writing it, such as "Yes", "YES" and "yes"."""

    name: str
    """The option's name in tables, such as "Yes"."""
    forms: tuple[str, ...]
    """One or more surface forms; the first token of each counts."""

    def __post_init__(self) -> None:
        # Lists are also rejected: an option is used as a key, so its forms must be hashable.
        if not isinstance(self.forms, tuple) or not self.forms:
            raise UserError(
                f"the forms of the option {self.name!r} are {shortened(repr(self.forms))}; "
                'expected a tuple of at least one text, such as ("Yes", "yes")'
            )
        for text in (self.name, *self.forms):
            if not isinstance(text, str) or not text:
                raise UserError(
                    f"the name or a form of the option {self.name!r} is {shortened(repr(text))}; "
                    "expected a string that is not empty"
                )
            check_visible("option", text)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two or more options, determined from the probabilities of the next token."""

    options: tuple[AnswerOption, ...]
    gold: str
    """Name of the correct option."""
    contrast: tuple[str, str] | None = None
    """The two options whose difference is attributed and patched; the first is positive. Without a
    contrast, attribution contrasts the correct option with the most probable other option.
    """

    needs: ClassVar[Needs] = "next-token logits"
    scored_by_next_token: ClassVar[bool] = True

    @classmethod
    def between(cls, positive: AnswerOption, negative: AnswerOption, *, gold: bool) -> "Choice":
        """A choice between two answers, such as Yes, which accepts the question, and No.

        `gold` is whether the positive answer, which is the first one, is correct.
        """
        # The string "No" is truthy, so it would make Yes the correct answer.
        if gold is not True and gold is not False:
            raise UserError(
                f"gold is {described(gold)}; expected True if the positive option is correct, "
                "or False"
            )
        _check_options((positive, negative))
        names = (positive.name, negative.name)
        return cls((positive, negative), gold=names[not gold], contrast=names)

    def __post_init__(self) -> None:
        _check_options(self.options)
        names = _check_names("options", tuple(option.name for option in self.options))
        forms = [form for option in self.options for form in set(option.forms)]
        if len(set(forms)) < len(forms):
            raise UserError(
                f"the options {', '.join(names)} share a form; expected forms that each belong "
                "to one option"
            )
        _check_gold(self.gold, names)
        pair = self.contrast
        named = isinstance(pair, tuple) and len(set(pair)) == 2 and set(pair) <= set(names)
        if pair is not None and not named:
            raise UserError(
                f"the contrast is {described(pair)}; expected a tuple of two of the options "
                f"{', '.join(names)}"
            )

    def judge(self, text: str) -> Judgement:
        """The option that begins the text, or the answer that it marks, in whole words.

        `option_at_start` says what has no answer; two options have none either (`marked_answer`).
        If forms of two options begin with the same word, so that they are told apart as whole texts
        alone, a text that begins with none of them may also name a single one
        (`only_option_named`): "Anna lives in New Jersey."
        """
        names = {form: option.name for option in self.options for form in option.forms}
        read = dict.fromkeys((text, marked_answer(text)))
        chosen = {option_at_start(part, names) for part in read} - {None}
        if not chosen and begin_alike(self.options):
            chosen = {only_option_named(part, names) for part in read} - {None}
        return _judged((len(chosen) == 1 and chosen.pop()) or Unanswered.UNPARSED, (self.gold,))

    def record(self) -> list[object]:
        """The full content, for hashing."""
        options = [[option.name, list(option.forms)] for option in self.options]
        return ["choice", options, self.gold, self.contrast]


@dataclass(frozen=True, slots=True)
class Label:
    """One of a classifier's classes."""

    classes: tuple[str, ...]
    """Names of all classes, as in the model's configuration or, if that lists none, of your choice
    in the order of the model's outputs.
    """
    gold: str

    needs: ClassVar[Needs] = "class logits"
    scored_by_next_token: ClassVar[bool] = True
    contrast: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check_gold(self.gold, _check_names("classes", self.classes))

    @property
    def options(self) -> tuple[AnswerOption, ...]:
        """The classes as options; the only form of each is its name."""
        return tuple(AnswerOption(name, (name,)) for name in self.classes)

    def judge(self, text: str) -> Judgement:
        """The class whose name equals the text, as written by text-to-text models."""
        written = marked_answer(text).strip()
        return _judged(written if written in self.classes else Unanswered.UNPARSED, (self.gold,))

    def record(self) -> list[object]:
        """The full content, for hashing."""
        return ["label", list(self.classes), self.gold]


Parser: TypeAlias = Callable[[str], str | Unanswered]
"""Function that finds the answer in a generated text; its name is included in the data's hash."""


def whole_text(text: str) -> str | Unanswered:
    """The parser for texts that mark their answer (`marked_answer`), or are nothing but it."""
    return marked_answer(text).strip() or Unanswered.UNPARSED


@dataclass(frozen=True, slots=True)
class FreeText:
    """An answer that a parser finds in generated text."""

    accepted: tuple[str, ...]
    """Correct answers in the form that the parser returns, such as ("12",), starting with the
    one given in the data.
    """
    parse: Parser = whole_text

    needs: ClassVar[Needs] = "generated text"
    scored_by_next_token: ClassVar[bool] = False
    contrast: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check_texts("accepted answers", self.accepted)
        for text in self.accepted:
            check_visible("accepted answer", text)
        if not callable(self.parse) or not hasattr(self.parse, "__qualname__"):
            raise UserError(
                f"the parser is {described(self.parse)}; expected a named function from a string "
                "to an answer or to a member of Unanswered"
            )

    @property
    def gold(self) -> str:
        """The correct answer given in the data."""
        return self.accepted[0]

    @property
    def options(self) -> tuple[AnswerOption, ...]:
        """The correct answer only, recognized by its first token."""
        return (AnswerOption(self.gold, self.accepted),)

    def judge(self, text: str) -> Judgement:
        """Correct if the parser finds one of the accepted answers."""
        return _judged(self.parse(text), self.accepted)

    def record(self) -> list[object]:
        """The full content, for hashing; the parser is given by name."""
        parser = f"{self.parse.__module__}.{getattr(self.parse, '__qualname__', '')}"
        return ["free text", list(self.accepted), parser]


@dataclass(frozen=True, slots=True)
class Completion:
    """A sentence to complete; correct if the text names the expected answer."""

    expected: tuple[str, ...]
    """Names of the expected answer; the first is the one given in the data."""
    excluded: tuple[str, ...] = ()
    """Names of other things that contain an expected name, such as "South Sudan" for "Sudan"."""

    needs: ClassVar[Needs] = "generated text"
    scored_by_next_token: ClassVar[bool] = False
    contrast: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check_texts("expected names", self.expected)
        for text in self.expected:
            check_visible("expected name", text)
            if not _normalized(text):
                raise UserError(
                    f"the expected name {shortened(repr(text))} has no letters or digits, so that "
                    "no text would name it; write it in words"
                )
        if self.excluded != ():
            _check_texts("excluded names", self.excluded)

    @property
    def gold(self) -> str:
        """The name of the expected answer that the data give."""
        return self.expected[0]

    @property
    def options(self) -> tuple[AnswerOption, ...]:
        """Only the name in the data; the probability of its first token is the familiarity."""
        return (AnswerOption(self.gold, (self.gold,)),)

    def judge(self, text: str) -> Judgement:
        """The answer is the first of the expected names that the text mentions."""
        name = mentions(text, self.expected, lookalikes=self.excluded)
        return _judged(name or Unanswered.UNPARSED, self.expected)

    def record(self) -> list[object]:
        """The full content, for hashing."""
        return ["completion", list(self.expected), list(self.excluded)]


Answer: TypeAlias = Choice | Label | FreeText | Completion


def _judged(answer: str | Unanswered, correct: tuple[str, ...]) -> Judgement:
    if isinstance(answer, Unanswered):
        return Judgement(answer.value, "", correct=False)
    return Judgement("answered", answer, correct=answer in correct)


def begin_alike(options: Iterable[AnswerOption]) -> bool:
    """Whether forms of two options begin with the same word."""
    firsts = [{word for form in option.forms for word in form.split()[:1]} for option in options]
    return len(frozenset().union(*firsts)) < sum(map(len, firsts))


def _check_options(options: object) -> None:
    if not isinstance(options, tuple):
        raise UserError(f"options is {described(options)}; expected a tuple of options")
    for option in options:
        if not isinstance(option, AnswerOption):
            raise UserError(
                f"an option is {described(option)}; expected one such as "
                'AnswerOption("Yes", ("Yes", "yes"))'
            )


def _check_names(what: str, names: tuple[str, ...]) -> tuple[str, ...]:
    _check_texts(what, names)
    if len(names) < 2 or len(set(names)) < len(names):
        raise UserError(
            f"the {what} are {shortened(repr(names))}; expected at least two different names"
        )
    return names


def _check_gold(gold: object, names: tuple[str, ...]) -> None:
    if gold not in names:
        raise UserError(f"gold is {described(gold)}; expected one of {', '.join(names)}")


def _check_texts(what: str, texts: object) -> None:
    are_texts = isinstance(texts, tuple) and all(isinstance(t, str) and t for t in texts)
    if not texts or not are_texts:
        raise UserError(f"the {what} are {described(texts)}; expected a tuple of non-empty strings")


def check_visible(what: str, text: str) -> None:
    """Raise a UserError if a text has characters that nobody sees but tokenizers read."""
    if problem := unseen(text):
        raise UserError(
            f"the {what} {shortened(ascii(text))} {problem}, so that tokens other than those of "
            "the visible text would be counted; write it without"
        )


_APOSTROPHES = re.compile("['’‘ʼʻ`]")
_POSSESSIVE = re.compile(r"['’ʼ]s\b", re.IGNORECASE)
_INITIAL = re.compile(r"\b([^\W\d_])\.")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DENIED = re.compile(
    r"\b(not|never|nor|neither|no longer|outside|nicht|kein\w{0,2}|pas|no es|nao|non|не|ليست?"
    r"|cannot|(is|was|are|were|do|does|did|has|have|ca|wo|would"
    r"|could|should)nt|(rather|other) than|instead of|as opposed to|unlike|except|excluding"
    r"|(any|every)(thing|where|one) but|all but|(apart|aside) from"
    r"|border(s|ed|ing)?( by| on| with)?|near(by)?|(next|adjacent|closer?) to|beside|opposite"
    r"|neighbou?r(s|ing)?|between( \S+ and)?|like|similar to|compared (to|with)|formerly"
    r"|(is|lies|located|situated|to|just|far|miles|km) (north|south|east|west) of)"
    r"( (in|en|at|of|from|to|for|by|as|a|an|it|its|called|named|located|situated|found|part|city"
    r"|capital|country|be|been|being|mean|actually|really|in fact|either|any)){0,4} $",
    re.IGNORECASE,
)
"""Words before a name, in normalized form, that deny it or say something else of it, as that it is
a neighbor; "not only" and "not just" deny nothing."""
_DENIED_BEHIND = re.compile(
    r"s? (is|was|are|were|would be|seems) ((\S+ly|also) )?"
    r"(not|never|wrong|incorrect|false|untrue|mistaken)\b(?! far)|s? (is|was|are|were)nt\b(?! far)",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"(?:\A|(?<=[.!?\n]))[^.!?\n]*\?(?=\W{1,20}\w)")
"""A question that the text goes on to answer; sought from where sentences begin, in linear time."""
_QUALIFIED = re.compile(
    r"\b(?<!north )(?<!south )(north|south|east|west|new|sainte?|san|santa|santo|sao|port|cape|fort"
    r"|equatorial|inner|baja|(gulf|bay|sea|straits?|isthmus|university|bank) of) $",
    re.IGNORECASE,
)
"""Words before a name that make it another one, as in "New Mexico", or "Gulf of Mexico"."""
_CONTINENTS = ("Africa", "Asia", "Europe")
"""East Africa is in Africa."""
_LOOKALIKES = (
    "Northern Ireland", "Northern Cyprus", "Northern Mariana Islands", "Northern Macedonia",
    "Northern Korea", "Southern Korea", "Southern Sudan", "Northern Rhodesia", "Southern Rhodesia",
    "Eastern Timor", "Western Sahara", "Western Samoa", "American Samoa", "British Columbia",
    "British Honduras", "British Guiana", "British Virgin Islands", "French Guiana",
    "French Guinea", "French Polynesia", "French Sudan", "Spanish Guinea", "Portuguese Guinea",
    "Guinea-Bissau", "Papua New Guinea", "Lower Saxony", "Saxony-Anhalt", "Kansas City",
    "Jersey City", "Niger Delta", "Lake Chad", "Panama Canal", "Central America", "Latin America",
    "Netherlands Antilles", "Democratic Republic of the Congo",
    "Democratic Republic of Congo", "Democratic People's Republic of Korea",
)  # fmt: skip
"""Names of places that hold the name of another place in which they are not."""
_DENIAL_LENGTH = 80
_MOST_WORDS = 20
"""Names of more words than this contain no others."""
_NO_WORD = re.compile(
    r"(?:(?!(?<=\d)[.,:/⁄](?=\d)|(?<!\w)[-−](?=\d)|(?<=[\w+#])[+#]+(?!\w))[\W_])+"
)
"""What separates words; the marks of a number (-5, 3.14, 1/4) or name (C++) do not."""
_ARTICLE = re.compile(r"\bthe\b", re.IGNORECASE)
_SAINT = re.compile(r"\bst\b", re.IGNORECASE)


def mentions(text: str, names: Sequence[str], *, lookalikes: Sequence[str] = ()) -> str:
    """The first of `names` that occurs in the text, spelled as in `names`; "" if no name occurs.

    Names are found as whole words. Case, diacritics, punctuation, apostrophes, a possessive or
    plural s, the article "the", the commas of thousands, "St." for "Saint" and "&" for "and" make
    no difference, but a name in capitals, such as "US", is found only in capitals. A name does not
    count within a lookalike, which is the name of something else, such as "South Sudan" for
    "Sudan", or within another longer name that is known (`_QUALIFIED`, `_LOOKALIKES`); nor in a
    question before an answer, nor where it is denied or a neighbor: "not Sudan", "near Sudan".
    """
    pattern, terms = _search(tuple(names), (*lookalikes, *_LOOKALIKES))
    words = _normalized(_QUESTION.sub("", text))
    for match in pattern.finditer(words):
        assert match.lastindex is not None
        term = terms[match.lastindex - 1]
        before = words[max(0, match.start() - _DENIAL_LENGTH) : match.start()]
        if term not in names or _DENIED.search(before) or _DENIED_BEHIND.match(words, match.end()):
            continue
        # "the new Germany" is Germany: the word before belongs to the name if written like it.
        longer = _QUALIFIED.search(before)
        if not longer or longer[0][0].isupper() != match[0][0].isupper() or term in _CONTINENTS:
            return term
    return ""


def longer_names(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The names that contain another, as whole words, by the name within them."""
    words_of = {name: tuple(_normalized(name).casefold().split()) for name in names}
    within: dict[tuple[str, ...], list[str]] = {}
    for name, words in words_of.items():
        for start, stop in combinations(range(len(words) + 1), 2):
            if stop - start < len(words) <= _MOST_WORDS:
                within.setdefault(words[start:stop], []).append(name)
    return {name: tuple(dict.fromkeys(within.get(words, ()))) for name, words in words_of.items()}


@lru_cache(maxsize=4096)
def _search(
    names: tuple[str, ...], lookalikes: tuple[str, ...]
) -> tuple[re.Pattern[str], list[str]]:
    """A pattern with one group per term, longest terms first, and the terms in the same order."""
    terms = sorted((*names, *lookalikes), key=lambda term: len(_normalized(term)), reverse=True)
    plain = map(_normalized, terms)
    groups = "|".join(
        f"({re.escape(term) if term.isupper() else f'(?i:{re.escape(term)})'})" for term in plain
    )
    return re.compile(rf"(?<!\S)(?:{groups})s?(?!\S)"), terms


def _normalized(text: str) -> str:
    """The text as words of plain letters, preserving case, with single spaces between words."""
    decomposed = unicodedata.normalize("NFKD", text)
    text = "".join(character for character in decomposed if not unicodedata.combining(character))
    text = _APOSTROPHES.sub("", _POSSESSIVE.sub("", text)).replace("&", " and ")
    text = _ARTICLE.sub(" ", _SAINT.sub("Saint", _INITIAL.sub(r"\1", text)))
    return _NO_WORD.sub(" ", _THOUSANDS.sub("", text)).replace("−", "-").strip()
