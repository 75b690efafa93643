"""Statements of a training set with short theories: what decides each, and few other sentences.

Such theories are cheap to learn from. Unlike those of whole theories, their counts are
informative: without other sentences, a statement is Unknown where the theory has no fact.
"""

import random
from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from interp_experiments.chance import below, some
from interp_experiments.robustlr.evaluation_sets import sources
from interp_experiments.robustlr.instances import Instance
from interp_experiments.robustlr.language import Literal, Rule, Theory
from interp_experiments.robustlr.sampling import sample
from interp_experiments.robustlr.training import (
    SPLITS,
    TRAINING_SETS,
    Split,
    TheoryMaker,
    balanced,
    confirmed,
    split_of,
)
from interp_experiments.robustlr.words import Words

STATEMENT = "statement"


@dataclass(frozen=True)
class StatementMaker:
    """Makes statements of one split, each with a theory of its own; labels come in turn."""

    set: str
    split: Split
    seed: int
    words: Words
    distractors: int
    """The most sentences that are kept beside those that decide the statement: a number up to it is
    drawn."""
    statements: int = 0

    versions: ClassVar[tuple[str, ...]] = (STATEMENT,)

    def __len__(self) -> int:
        return self.statements or SPLITS[self.split]

    def theory_id(self, index: int) -> str:
        """The id of a statement's theory."""
        return f"{self.set}-{self.distractors}-{self.split}-{index:06d}"

    def group(self, index: int) -> tuple[Instance, ...]:
        """A statement with its theory, the same for a seed on every platform."""
        rng = random.Random(
            f"robustlr {self.set} {self.distractors} {self.split} {self.seed} {index}"
        )
        place = index % len(TheoryMaker.versions)
        while True:
            sampled = sample(rng, self.words, TRAINING_SETS[self.set])
            statements = balanced(rng, sampled)
            if statements is None:
                continue
            statement, label = statements[place]
            theory = cut(rng, sampled.theory, statement, below(rng, self.distractors + 1))
            if split_of(theory) == self.split and confirmed(theory, [(statement, label)]):
                id_ = self.theory_id(index)
                return (Instance.alone(id_, self.set, STATEMENT, theory, (statement, label)),)


def cut(rng: random.Random, theory: Theory, statement: Literal, distractors: int) -> Theory:
    """A theory without all but a number of the sentences that decide nothing about a statement.

    Of a statement that no rule concludes one sentence that mentions it is kept.
    """
    needed: Set[Literal | Rule] = sources(theory, statement) or _mentioning(rng, theory, statement)
    others = [sentence for sentence in theory.sentences if sentence not in needed]
    return theory.only(frozenset(needed) | frozenset(some(rng, others, distractors)))


def _mentioning(
    rng: random.Random, theory: Theory, statement: Literal
) -> frozenset[Literal | Rule]:
    found = [
        rule
        for rule in theory.rules
        if any(one.predicate == statement.predicate for one in rule.literals)
    ]
    return frozenset(some(rng, found, 1))
