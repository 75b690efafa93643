"""The parts of a RuleBench set: its kind, its questions and its rules."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from interp import UserError
from interp.extend import shortened, unknown
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
    gold: Callable[[str, bool | None], str]
    """Returns the correct answer as the parser would, from an item's output and ULogic's field
    `positive_` (None if lacking); raises UserError if the data have none."""
    asked_for: str
    """The required form of the answer, in words; the set's answers replace "{labels}"."""
    folders: tuple[str, ...] = ()
    """Names of the authors' folders, in lower case; empty for generated sets."""
    few: int = 2
    """Number of noise rules when few rules are shown."""
    many: int = 29
    """Number when all are shown (30 rules in total in the authors' code, 31 in the paper)."""
    factors: tuple[str, ...] = ()
    """Factors that vary between items of this kind."""
    written: Callable[[str], str] = str
    """Formats the correct answer for training texts."""

    def noise(self, quantity: Quantity) -> int:
        """The number of noise rules for a quantity of rules."""
        return {"few": self.few, "all": self.many}.get(quantity, 0)


def _kinship(output: str, _: bool | None) -> str:
    return _among(output.lower(), KINSHIPS, "a kinship such as uncle")


def _letter(output: str, _: bool | None) -> str:
    return _among(output.lower(), "abcd", "a letter from a to d")


def _category(output: str, _: bool | None) -> str:
    found = re.match(r"\s*(O[1-6])\b", output, re.IGNORECASE)
    return _among(found[1].lower() if found else output, CATEGORIES, "one of O1 to O6")


def _truth(_: str, positive: bool | None) -> str:
    if positive is None:
        raise UserError("it has no positive_; expected true or false")
    return str(positive).lower()


def _charge(output: str, _: bool | None) -> str:
    charge = output.strip()
    if not re.search(r"[\u4e00-\u9fff]", charge):
        raise UserError(
            f"its output is {shortened(charge, 60)!r}; expected a criminal charge in Chinese"
        )
    return charge


def _among(answer: str, known: Iterable[str], expected: str) -> str:
    answer = answer.strip()
    if answer not in set(known):
        raise UserError(f"its output is {shortened(answer, 60)!r}; expected {expected}")
    return answer


def _number(output: str, positive: bool | None) -> str:
    raise UserError("StringGame is generated, so no data are read for it")


_A_KINSHIP = "one word for the kinship, such as uncle"
_A_LETTER = "the letter of the correct option"

CLUTRR = QuestionKind("clutrr", _kinship, _A_KINSHIP, ("clutrr",))
SALAD = QuestionKind(
    "salad",
    _category,
    "the unsafe content category of the text: "
    + ", ".join(f"{id_.upper()} ({name})" for id_, name in CATEGORIES.items()),
    ("salad",),
    written=str.upper,
)
DEER = QuestionKind("deer", _letter, _A_LETTER, ("deer",), written=str.upper)
THEOREMQA = QuestionKind("theoremqa", _letter, _A_LETTER, ("theoremqa",), many=4)
ULOGIC = QuestionKind("ulogic", _truth, "True or False", ("ulogic",), written=str.capitalize)
CAIL = QuestionKind(
    "cail2018",
    _charge,
    "one of these charges: {labels}",
    ("law", "cail", "cail2018"),
    few=3,
    many=19,
)
KINSHIP = QuestionKind("kinship", _kinship, _A_KINSHIP, factors=("hops",))
STRING_GAME = QuestionKind("string-game", _number, "the number")

READ = (CLUTRR, SALAD, DEER, THEOREMQA, ULOGIC, CAIL)
"""The kinds in the authors' data; three kinds also have counterfactual folders."""

BY_NAME = {kind.name: kind for kind in (*READ, KINSHIP, STRING_GAME)}


def named(name: str) -> QuestionKind:
    """The kind with this name or with this folder name.

    Raises:
        UserError: no kind has the name.
    """
    for kind in READ:
        if name.lower() in (kind.name, *kind.folders):
            return kind
    raise UserError(unknown("set", name, [kind.name for kind in READ]))


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

    name: str
    """As in tables, such as "clutrr"."""
    kind: QuestionKind
    factual: Version | None
    counterfactual: Version | None = None
    fits: Callable[[Item, Rule, Rule], bool] = same_body
    """Whether a rule fits an item, and so is no noise; the third argument is the golden rule."""
    problems: tuple[str, ...] = ()
    """Messages about items and rules that were omitted when the set was read."""
