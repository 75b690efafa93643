"""What a set of RuleBench consists of: questions, the rules of its domain, and what fits what."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from interp_experiments.rulebench.kinds import Kind

Split = Literal["train", "held-out"]
"""Whether models may be tuned on a rule."""

HELD_OUT = 5
"""One rule of so many is held out, where rules are generated."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An inferential rule in its two forms."""

    id: str
    natural: str
    """In natural language, such as "if A has a son B, ..., then ..."."""
    logic: str | None = None
    """In first-order logic; None where the data have it in natural language alone."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its correct answer and the id of its golden rule."""

    id: str
    """Its position in the data, from 1, such as "0007"."""
    question: str
    gold: str
    """The answer as the parser of its kind gives it."""
    rule: str
    factors: Mapping[str, str] = field(default_factory=dict)
    """What was varied, such as the number of hops."""


@dataclass(frozen=True)
class Version:
    """The factual or the counterfactual items of a set, with the rules that belong to them."""

    items: Sequence[Item]
    rules: Mapping[str, Rule]
    """By id. Every item's golden rule is among them."""

    @cached_property
    def rule_ids(self) -> Sequence[str]:
        """The ids of the rules, in their order."""
        return tuple(self.rules)

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        """The items by id."""
        return {item.id: item for item in self.items}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The answers that occur, sorted."""
        return tuple(sorted({item.gold for item in self.items}))


Fits = Callable[[Item, Rule, Rule], bool]
"""Whether a rule fits an item, whose golden rule is the third argument; then it is no noise."""


def same_body(item: Item, rule: Rule, golden: Rule) -> bool:
    """Whether a rule has the conditions of the golden one, as far as its text shows.

    The conditions are what precedes "then", or the whole rule where there is none.
    """
    return body(rule.natural) == body(golden.natural)


_THEN = re.compile(r"\bthen\b|那么")


def body(natural: str) -> str:
    """The conditions of a rule in natural language, without case and punctuation at the ends."""
    return _THEN.split(natural.lower(), maxsplit=1)[0].strip(" ,，.")


@dataclass(frozen=True)
class RuleSet:
    """A set of questions and rules; at least one of its two versions is there."""

    name: str
    """What it is called in tables, such as "clutrr"."""
    kind: Kind
    factual: Version | None
    counterfactual: Version | None = None
    fits: Fits = same_body
    problems: tuple[str, ...] = ()
    """What was left out when it was read, a line each."""
