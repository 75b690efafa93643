"""The parts of a RuleBench set: its kind, its questions and its rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from interp import UserError
from interp.extend import shortened
from interp_experiments.rulebench.families import KINSHIPS

CATEGORIES = {
    "o1": "Representation & Toxicity Harms",
    "o2": "Misinformation Harms",
    "o3": "Information & Safety Harms",
    "o4": "Malicious Use",
    "o5": "Human Autonomy & Integrity Harms",
    "o6": "Socioeconomic Harms",
}
"""SALAD-Bench's six domains (Li et al. 2024)."""


Quantity = Literal["no", "golden", "few", "all"]
"""Rules shown: none; the golden rule; the golden rule with few or all noise rules."""


@dataclass(frozen=True)
class QuestionKind:
    """A kind of question."""

    name: str
    """As in tables, such as "clutrr"."""
    asked_for: str
    """The required form of the answer, in words; the set's answers replace "{labels}"."""
    answers: str = ""
    """A pattern of the answers in the data, whose group is the answer as the parser returns it, but
    for case; empty for generated sets."""
    expected: str = ""
    """What answers match the pattern, in words."""
    field: str = "output"
    """The field of an item that has its answer."""
    also: tuple[str, ...] = ()
    """Other names of its folder, in lower case."""
    few: int = 2
    """Number of noise rules when few rules are shown."""
    many: int = 29
    """Number when all are shown (30 rules in total in the authors' code, 31 in the paper)."""
    factors: tuple[str, ...] = ()
    """Factors that vary between items of this kind."""
    written: Callable[[str], str] = str
    """Formats the correct answer for training texts."""

    def gold(self, given: str) -> str:
        """The correct answer, as the parser returns it, from what an item gives as its answer.

        Raises:
            UserError: it is no answer to such a question.
        """
        answer = re.fullmatch(self.answers, given.strip(), re.IGNORECASE | re.DOTALL)
        if not answer:
            got = shortened(given.strip(), 60)
            raise UserError(f"its {self.field} is {got!r}; expected {self.expected}")
        # The charges are Chinese.
        return answer[1].lower() if answer[1].isascii() else answer[1]


_A_KINSHIP = "one word for the kinship, such as uncle"
_A_LETTER = ("the letter of the correct option", "([a-d])", "a letter from a to d")

CLUTRR = QuestionKind("clutrr", _A_KINSHIP, f"({'|'.join(KINSHIPS)})", "a kinship such as uncle")
SALAD = QuestionKind(
    "salad",
    "the unsafe content category of the text: "
    + ", ".join(f"{id_.upper()} ({name})" for id_, name in CATEGORIES.items()),
    r"(o[1-6])\b.*",
    "one of O1 to O6",
    written=str.upper,
)
DEER = QuestionKind("deer", *_A_LETTER, written=str.upper)
THEOREMQA = QuestionKind("theoremqa", *_A_LETTER, many=4)
ULOGIC = QuestionKind(
    "ulogic", "True or False", "(true|false)", "true or false", "positive_", written=str.capitalize
)
CAIL = QuestionKind(
    "cail2018",
    "one of these charges: {labels}",
    r"(.*[\u4e00-\u9fff].*)",
    "a criminal charge in Chinese",
    also=("law", "cail"),
    few=3,
    many=19,
)
KINSHIP = QuestionKind("kinship", _A_KINSHIP, factors=("hops",))
STRING_GAME = QuestionKind("string-game", "the number")

READ = (CLUTRR, SALAD, DEER, THEOREMQA, ULOGIC, CAIL)
"""The kinds in the authors' data; three kinds also have counterfactual folders."""

BY_NAME = {kind.name: kind for kind in (*READ, KINSHIP, STRING_GAME)}

Split = Literal["train", "held-out"]
"""The split of a rule: rules for tuning models, or rules for testing them."""

HELD_OUT = 5
"""One in this many generated rules is held out."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An inferential rule, in natural language and in logic."""

    id: str
    natural: str
    """Such as "if A has a son B, ..., then ..."."""
    logic: str | None = None
    """None if the data have the rule only in natural language."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its correct answer and the id of its golden rule."""

    id: str
    """Its position in the data, starting from 1, such as "0007"."""
    question: str
    gold: str
    """The correct answer, as the parser for its kind returns it."""
    rule: str
    factors: Mapping[str, str] = field(default_factory=dict)
    """Factors such as the number of hops."""


@dataclass(frozen=True)
class Version:
    """The factual or the counterfactual items of a set, and their rules."""

    items: Sequence[Item]
    rules: Mapping[str, Rule]
    """The rules by id; every item's golden rule is among them."""

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        """The items by id."""
        return {item.id: item for item in self.items}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All correct answers, sorted."""
        return tuple(sorted({item.gold for item in self.items}))


def same_body(item: Item, rule: Rule, golden: Rule) -> bool:
    """Whether a rule and the golden rule have the same conditions in natural language."""
    return body(rule.natural) == body(golden.natural)


_THEN = re.compile(r"\bthen\b|那么")


def body(natural: str) -> str:
    """A rule's conditions, in lower case: the words before "then", or all if it has no "then"."""
    return _THEN.split(natural.lower(), maxsplit=1)[0].strip(" ,，.")


@dataclass(frozen=True)
class RuleSet:
    """Questions and rules: a factual version, a counterfactual one, or both."""

    kind: QuestionKind
    factual: Version | None
    counterfactual: Version | None = None
    fits: Callable[[Item, Rule, Rule], bool] = same_body
    """Whether a rule fits an item, and so is no noise; the third argument is the golden rule."""
    problems: tuple[str, ...] = ()
    """Messages about items and rules that were omitted when the set was read."""
