"""Training sets, and training on them (Sanyal et al. 2022, Sections 4.3 and 5, Appendix B).

The four sets are balanced, in splits that share no theory.

Each theory has six statements: a literal that it proves without negation and one with negation
(True), the negations of both (False), and one of either kind that it does not decide (Unknown).
So within every theory each label has the same count of everything that can be counted in theory
and statement: no such count can give the label away. Theories that do not have these literals are
dropped.

A hash of a theory's sentences, independent of their order and wording, decides its split. So
splits share no theory, and any group can be made separately.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Annotated, ClassVar
from typing import Literal as OneOf

from pydantic import Field

from interp.errors import UserError
from interp.prompts.prompt import ALONE
from interp.prompts.prompt_set import PromptSet
from interp.training.spec import Split, TrainSpec
from interp_experiments.chance import below, some
from interp_experiments.robustlr.evaluation_sets import sources
from interp_experiments.robustlr.language import (
    Instance,
    Literal,
    Operator,
    Question,
    Rule,
    Theory,
    Verdict,
)
from interp_experiments.robustlr.prompts import Maker, made_by
from interp_experiments.robustlr.sampling import Sampled, Words, sample
from interp_experiments.robustlr.solver import Worlds

TRAINING_SETS: Mapping[str, tuple[Operator, ...]] = {
    "NOT": (),
    "AND+NOT": ("and",),
    "OR+NOT": ("or",),
    "All": ("and", "or"),
}
"""The operators that join literals of a body in each set; all sets have negation."""

SPLITS: Mapping[Split, int] = {"train": 50_000, "dev": 10_000, "test": 10_000}
"""Instances in each published split (Table 7); here as many as whole theories allow."""

_VERSIONS = (
    "true",
    "true-negated",
    "false",
    "false-negated",
    "unknown",
    "unknown-negated",
)


@dataclass(frozen=True)
class TheoryMaker:
    """Makes the theories of one split of one training set, each with its statements."""

    set: str
    split: Split
    seed: int
    words: Words
    theories: int | None = None
    """Number of theories; as many as published if None."""

    versions = _VERSIONS
    """The label of each statement, and whether it is negated."""

    def __len__(self) -> int:
        return SPLITS[self.split] // len(_VERSIONS) if self.theories is None else self.theories

    def theory_id(self, index: int) -> str:
        """The id that the statements of a theory share."""
        return f"{self.set}-{self.split}-{index:05d}"

    def group(self, index: int) -> tuple[Instance, ...]:
        """A theory with its six statements, the same for a seed on every platform."""
        rng = random.Random(f"robustlr {self.set} {self.split} {self.seed} {index}")
        while True:
            sampled = sample(rng, self.words, TRAINING_SETS[self.set])
            statements = balanced(rng, sampled)
            if statements is None or split_of(sampled.theory) != self.split:
                continue
            if confirmed(sampled.theory, statements):
                return tuple(
                    Instance.alone(
                        self.theory_id(index), self.set, version, sampled.theory, question
                    )
                    for version, question in zip(_VERSIONS, statements, strict=True)
                )


Statements = tuple[Question, ...]


def balanced(rng: random.Random, sampled: Sampled) -> Statements | None:
    """Six statements with their labels, in the order of the versions; None if there are fewer."""
    affirmed, denied = (
        some(rng, [one for one in sampled.proved if one.positive is positive], 1)
        for positive in (True, False)
    )
    unknown = some(rng, sampled.unproved, 2)
    if not affirmed or not denied or len(unknown) < 2:
        return None
    (yes,), (no,) = affirmed, denied
    return (
        (yes, Verdict.TRUE),
        (no, Verdict.TRUE),
        (no.negated, Verdict.FALSE),
        (yes.negated, Verdict.FALSE),
        *(
            (Literal(one.predicate, positive, one.inverted), Verdict.UNKNOWN)
            for one, positive in zip(unknown, (True, False), strict=True)
        ),
    )


def split_of(theory: Theory) -> Split:
    """The split that a theory belongs to; each split has a third of all theories."""
    content = "\n".join(sorted(map(str, theory.sentences)))
    number = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big")
    return tuple(SPLITS)[number % len(SPLITS)]


def confirmed(theory: Theory, statements: Iterable[tuple[Literal, Verdict]]) -> bool:
    """Whether the solver finds these labels."""
    try:
        worlds = Worlds.of(theory)
    except UserError:  # too many predicates to enumerate: another theory is drawn
        return False
    return all(worlds.verdict(statement) is label for statement, label in statements)


STATEMENT = "statement"


@dataclass(frozen=True)
class StatementMaker:
    """Makes statements of one split, each with its own short theory; labels come in turn.

    A theory holds the sentences that decide its statement, and few others. It is cheap to learn
    from. Unlike those of whole theories, its counts are informative: without other sentences, a
    statement is Unknown if the theory has no fact.
    """

    set: str
    split: Split
    seed: int
    words: Words
    distractors: int
    """Maximum number of sentences kept that do not decide the statement; the number kept is drawn
    uniformly from 0 to this."""
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
    """A theory cut to what decides a statement, and `distractors` other sentences.

    If no rule concludes the statement, one sentence that mentions it is kept.
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


STATEMENTS = len(TheoryMaker.versions)
"""Statements of a theory."""


def maker_of(
    set_: str, split: Split, seed: int, distractors: int | None, *, theories: int | None = None
) -> Maker:
    """The maker of a split of a training set.

    Args:
        set_: name of the training set.
        split: train, dev or test.
        seed: the seed of the drawn theories.
        distractors: give each statement its own theory, with at most this many sentences that do
            not decide it; None if six statements share a whole theory.
        theories: number of theories, of short ones six times as many; as many as published if None.
    """
    words = Words.of("real")
    if distractors is None:
        return TheoryMaker(set_, split, seed, words, theories)
    return StatementMaker(set_, split, seed, words, distractors, (theories or 0) * STATEMENTS)


MOST_THEORIES = 10**7
MOST_DISTRACTORS = 1000


class RobustLRTraining(TrainSpec):
    """Learn whether a theory makes a statement True, False or Unknown."""

    name: ClassVar[str] = "robustlr"

    train_set: OneOf["All", "NOT", "AND+NOT", "OR+NOT"] = "All"
    """which operators the theories have: All, NOT, AND+NOT or OR+NOT"""
    theories: Annotated[int, Field(ge=1, le=MOST_THEORIES)] = SPLITS["train"] // STATEMENTS
    """theories that are learned, each with six statements"""
    held_out: Annotated[int, Field(ge=1, le=MOST_THEORIES)] = SPLITS["dev"] // STATEMENTS
    """theories of each held-out split, each with six statements"""

    distractors: Annotated[int, Field(ge=0, le=MOST_DISTRACTORS)] | None = None
    """give each statement its own theory, with at most this many sentences that do not decide it
    (default: six statements share a whole theory, as published)"""

    def prompts(self, split: Split) -> PromptSet:
        """The statements of a split's theories; no theory is in two splits."""
        number = self.theories if split == "train" else self.held_out
        maker = maker_of(self.train_set, split, self.seed, self.distractors, theories=number)
        return made_by(
            [maker],
            ALONE,
            system=f"robustlr-{self.train_set}",
            seed=self.seed,
            description={"data": "generated", "split": split},
        )
