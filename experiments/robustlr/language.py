"""The language of theories: predicates, literals, rules (Sanyal et al. 2022, Section 3.2)."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal as OneOf

Operator = OneOf["and", "or"]


class Verdict(StrEnum):
    """What a theory says of a statement."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @property
    def negated(self) -> "Verdict":
        """What the theory says of the statement's negation."""
        return _NEGATED[self]


_NEGATED = {
    Verdict.TRUE: Verdict.FALSE,
    Verdict.FALSE: Verdict.TRUE,
    Verdict.UNKNOWN: Verdict.UNKNOWN,
}

LABELS = tuple(verdict.value for verdict in Verdict)
"""Verdicts as texts, in their order."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """An adjective of somebody, tall(Anna), or a relation of two people, sister(Anna, Bob)."""

    word: str
    subject: str
    object: str | None = None

    def __str__(self) -> str:
        people = self.subject if self.object is None else f"{self.subject}, {self.object}"
        return f"{self.word}({people})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A predicate or its negation: an atomic predicate."""

    predicate: Predicate
    positive: bool = True
    inverted: bool = field(default=False, compare=False)
    """Whether it is worded "the sister of Bob is Anna", where there is such a wording."""

    @property
    def negated(self) -> "Literal":
        """Its negation, in the same wording."""
        return Literal(self.predicate, not self.positive, self.inverted)

    def __str__(self) -> str:
        return f"{'' if self.positive else '¬'}{self.predicate}"


@dataclass(frozen=True, slots=True)
class Rule:
    """If all ("and") or some ("or") literals of the body hold, so do all of the head."""

    body: tuple[Literal, ...]
    head: tuple[Literal, ...]
    operator: Operator = "and"
    """How the literals of the body are joined; "and" where there is one."""
    style: int = field(default=0, compare=False)
    """Which template words it."""

    @property
    def simple(self) -> bool:
        """Whether both sides are atomic."""
        return len(self.body) == len(self.head) == 1

    @property
    def literals(self) -> tuple[Literal, ...]:
        """Those of the body, then those of the head."""
        return self.body + self.head

    def __str__(self) -> str:
        sign = {"and": " ∧ ", "or": " ∨ "}[self.operator]
        return f"{sign.join(map(str, self.body))} → {' ∧ '.join(map(str, self.head))}"


@dataclass(frozen=True, slots=True)
class Theory:
    """Facts and rules, in the order of the text."""

    facts: tuple[Literal, ...]
    rules: tuple[Rule, ...]

    @property
    def sentences(self) -> tuple[Literal | Rule, ...]:
        """Facts, then rules."""
        return self.facts + self.rules

    def literals(self) -> Iterator[Literal]:
        """Every occurrence of a literal."""
        yield from self.facts
        for rule in self.rules:
            yield from rule.literals

    def predicates(self) -> set[Predicate]:
        """The predicates that it mentions."""
        return {literal.predicate for literal in self.literals()}

    def with_rule(self, old: Rule, *new: Rule) -> "Theory":
        """The theory with one rule replaced, where it is."""
        place = self.rules.index(old)
        return replace(self, rules=(*self.rules[:place], *new, *self.rules[place + 1 :]))

    def only(self, kept: frozenset[Literal | Rule]) -> "Theory":
        """Those of its sentences that are kept."""
        return Theory(
            tuple(fact for fact in self.facts if fact in kept),
            tuple(rule for rule in self.rules if rule in kept),
        )
