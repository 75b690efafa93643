"""The language of theories and its wording in English (Sanyal et al. 2022, Sections 3.2, 4.1)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal as OneOf

Operator = OneOf["and", "or"]


class Verdict(StrEnum):
    """A theory's verdict on a statement."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @property
    def negated(self) -> "Verdict":
        """The theory's verdict on the statement's negation."""
        opposite = {Verdict.TRUE: Verdict.FALSE, Verdict.FALSE: Verdict.TRUE}
        return opposite.get(self, self)


LABELS = tuple(verdict.value for verdict in Verdict)
"""Names of the verdicts."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """An adjective for one person, tall(Anna), or a relation between two, sister(Anna, Bob)."""

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
    """Whether a relation is worded "the sister of Bob is Anna"."""

    @property
    def negated(self) -> "Literal":
        """The negated literal, in the same wording."""
        return Literal(self.predicate, not self.positive, self.inverted)

    def __str__(self) -> str:
        return f"{'' if self.positive else '¬'}{self.predicate}"


@dataclass(frozen=True, slots=True)
class Rule:
    """If all ("and") or any ("or") literals of the body hold, all literals of the head hold too."""

    body: tuple[Literal, ...]
    head: tuple[Literal, ...]
    operator: Operator = "and"
    """The word between the literals of the body; "and" if there is only one."""
    style: int = field(default=0, compare=False)
    """The index of its template in `RULE_STYLES`."""

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The literals of the body, then those of the head."""
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

    @property
    def named(self) -> dict[str, Literal | Rule]:
        """The sentences by name: fact1, fact2 ..., rule1, rule2 ..."""
        facts = {f"fact{n}": one for n, one in enumerate(self.facts, start=1)}
        return {**facts, **{f"rule{n}": one for n, one in enumerate(self.rules, start=1)}}

    def literals(self) -> Iterator[Literal]:
        """Every occurrence of a literal in the theory."""
        yield from self.facts
        for rule in self.rules:
            yield from rule.literals

    def predicates(self) -> set[Predicate]:
        """All predicates in the theory."""
        return {literal.predicate for literal in self.literals()}

    def with_rule(self, old: Rule, *new: Rule) -> "Theory":
        """The theory with one rule replaced; the order of the rules is unchanged."""
        place = self.rules.index(old)
        return replace(self, rules=(*self.rules[:place], *new, *self.rules[place + 1 :]))

    def only(self, kept: frozenset[Literal | Rule]) -> "Theory":
        """The theory, with only the kept sentences."""
        return Theory(
            tuple(fact for fact in self.facts if fact in kept),
            tuple(rule for rule in self.rules if rule in kept),
        )


RULE_STYLES = (
    "If {body}, then {head}.",
    "If {body} then {head}.",
    "{head} if {body}.",
    "{head}, if {body}.",
)
"""Templates for rules."""


def sentence(statement: Literal | Rule) -> str:
    """A fact, statement or rule as a sentence with an initial capital and a full stop."""
    if isinstance(statement, Literal):
        words = f"{clause(statement)}."
    else:
        body, head = joined(statement.body, statement.operator), joined(statement.head, "and")
        words = RULE_STYLES[statement.style].format(body=body, head=head)
    return words[0].upper() + words[1:]


def joined(literals: Sequence[Literal], operator: Operator) -> str:
    """Literals joined by "and" or "or"; adjectives of the same subject share one clause.

    After a negated adjective "is" is repeated: "Anna is not tall and is kind" has one reading,
    whereas "Anna is not tall and kind" may deny both.
    """
    first, *others = literals
    words = clause(first)
    for before, literal in zip(literals, others, strict=False):
        one, other, told = before.predicate, literal.predicate, clause(literal)
        if one.object is None and other.object is None and one.subject == other.subject:
            told = told.removeprefix(f"{other.subject} {'is ' if before.positive else ''}")
        words += f" {operator} {told}"
    return words


def clause(literal: Literal) -> str:
    """A literal as a clause, such as "Anna is not tall"."""
    predicate = literal.predicate
    first, second = predicate.subject, predicate.word
    if predicate.object is not None:
        second = f"the {predicate.word} of {predicate.object}"
        if literal.inverted:
            first, second = second, first
    return f"{first} is {'' if literal.positive else 'not '}{second}"


@dataclass(frozen=True, slots=True)
class Instance:
    """A question: does the theory entail the statement, its negation, or neither?"""

    theory_id: str
    """The id shared by a base theory and its variants."""
    set: str
    """Its set, such as "C-CS"."""
    version: str
    """Its role in the group, such as "conj1"."""
    group: str
    """Its difference from the base, such as "conj+neg"."""
    base_label: Verdict
    """The label of the group's base."""
    theory: Theory
    statement: Literal
    label: Verdict

    @classmethod
    def alone(
        cls, theory_id: str, set_: str, version: str, theory: Theory, question: "Question"
    ) -> "Instance":
        """A question without variants; it is its own base."""
        statement, label = question
        return cls(theory_id, set_, version, label.value, label, theory, statement, label)

    @property
    def id(self) -> str:
        """The id, unique among all instances."""
        return f"{self.theory_id}/{self.version}"

    @property
    def context(self) -> str:
        """The theory in English: facts, then rules."""
        return " ".join(map(sentence, self.theory.sentences))


Question = tuple[Literal, Verdict]
"""A statement and its label."""


@dataclass(frozen=True)
class Groups:
    """Groups of instances, such as a base with its variants, each made when it is needed."""

    set: str
    """The set to which the groups belong."""
    versions: tuple[str, ...]
    """The names of a group's members."""
    number: int
    theory_id: Callable[[int], str]
    """The id that the members of a group share."""
    group: Callable[[int], tuple[Instance, ...]]
    """A group, one instance for each version; a seed gives the same on every platform."""
