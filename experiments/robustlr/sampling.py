"""Theories by label-priority sampling (Sanyal et al. 2022, Algorithm 1).

The printed algorithm is ambiguous. Here the two labels are equally likely; a body has one or two
predicates with equal probability; the first layer has no rules; and a predicate becomes unprovable
if its body cannot be drawn or its rule is not allowed. As distractors, unprovable predicates also
have rules, with unprovable bodies. The paper gives no values for probabilities and depths; the
values below are this project's.

The labels are right because every predicate has only one polarity in a theory, and the literals of
a body are either all provable or all unprovable, so "and" and "or" agree. The solver still confirms
each label when statements are chosen.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal as OneOf

from interp_experiments.chance import below, happens, pick, some
from interp_experiments.logical_forms.language import names
from interp_experiments.packaged import packaged_rows
from interp_experiments.robustlr.language import (
    RULE_STYLES,
    Literal,
    Operator,
    Predicate,
    Rule,
    Theory,
)

Vocabulary = OneOf["real", "nonce"]
"""Columns of the data file: English words, or invented ones."""

PEOPLE, RELATIONS = 5, 0.3
"""Number of people in a theory; probability that a drawn predicate is a relation."""


@dataclass(frozen=True)
class Words:
    """The words from which predicates are drawn (Section 4.1); names have no gender."""

    names: tuple[str, ...]
    adjectives: tuple[str, ...]
    relations: tuple[str, ...]

    @classmethod
    @cache
    def of(cls, vocabulary: Vocabulary) -> "Words":
        """The packaged words."""
        rows = packaged_rows(__package__, "words.csv")
        adjectives, relations = (
            tuple(row[vocabulary] for row in rows if row["kind"] == kind)
            for kind in ("adjective", "relation")
        )
        return cls(names(), adjectives, relations)

    def predicate(self, rng: random.Random, people: list[str]) -> Predicate:
        """A predicate about one or two of these people."""
        if happens(rng, RELATIONS):
            return Predicate(pick(rng, self.relations), *some(rng, people, 2))
        return Predicate(pick(rng, self.adjectives), pick(rng, people))


PREDICATES, DEPTH = (10, 30), 5
"""Least and largest number of predicates; largest number of layers, the first of facts."""

NEGATED, INVERTED = 0.3, 0.3
"""Probability that a predicate is negated, and that a relation is worded with its object first."""

OPERATORS: tuple[Operator, Operator] = ("and", "or")


@dataclass(frozen=True, slots=True)
class Sampled:
    """A theory, with its literals grouped by the labels that were drawn for them."""

    theory: Theory
    people: list[str]
    proved: tuple[Literal, ...]
    unproved: tuple[Literal, ...]
    """Literals in the theory that are not provable."""


def sample(rng: random.Random, words: Words, allowed: Sequence[Operator] = OPERATORS) -> Sampled:
    """A theory in which each body is one literal, or literals joined by an allowed operator."""
    people = some(rng, words.names, PEOPLE)
    low, high = PREDICATES
    number = low + below(rng, high - low + 1)
    different: dict[Predicate, None] = {}
    while len(different) < number:
        different[words.predicate(rng, people)] = None
    drawn, depth = list(different), 1 + below(rng, DEPTH)
    labels: dict[Literal, bool] = {}
    rules: list[Rule] = []
    before: list[Literal] = []
    for layer in range(depth):
        literals = [as_literal(rng, one) for one in drawn[layer::depth]]
        for literal in literals:
            labels[literal] = happens(rng, 0.5)
            if layer:
                candidates = [one for one in before if labels[one] == labels[literal]]
                rule = draw_rule(rng, literal, candidates, allowed)
                if rule is None:
                    labels[literal] = False
                else:
                    rules.append(rule)
        before = literals
        if not layer:
            facts = [literal for literal in literals if labels[literal]]
    theory = Theory(tuple(some(rng, facts, len(facts))), tuple(some(rng, rules, len(rules))))
    mentioned = theory.predicates()
    proved = tuple(one for one, label in labels.items() if label)
    unproved = [one for one, label in labels.items() if not label and one.predicate in mentioned]
    return Sampled(theory, people, proved, tuple(unproved))


def draw_rule(
    rng: random.Random, head: Literal, candidates: Sequence[Literal], allowed: Sequence[Operator]
) -> Rule | None:
    """A rule with one or two candidates in its body; None if the drawn rule is not allowed."""
    body = tuple(some(rng, candidates, 1 + below(rng, 2)))
    operator = pick(rng, OPERATORS) if len(body) > 1 else "and"
    if not body or (len(body) > 1 and operator not in allowed):
        return None
    return Rule(body, (head,), operator, below(rng, len(RULE_STYLES)))


def as_literal(rng: random.Random, predicate: Predicate) -> Literal:
    """A predicate as a literal, in the polarity and wording drawn for a theory."""
    positive, inverted = not happens(rng, NEGATED), happens(rng, INVERTED)
    return Literal(predicate, positive, inverted and predicate.object is not None)
