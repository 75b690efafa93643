"""The training sets, and training on them (Sanyal et al. 2022, Sections 4.3 and 5, Appendix B).

The four sets have balanced labels, and their splits share no theory.

Each theory has six statements: an unnegated and a negated literal that it proves (True), the
negations of both (False), and an unnegated and a negated literal that it leaves undecided
(Unknown). Within a theory, therefore, no count of parts of the theory or the statement gives the
label away. Theories that lack any of these literals are dropped.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping
from typing import Annotated
from typing import Literal as OneOf

from pydantic import Field

from interp import PromptSet, UserError
from interp.extend import TrainSpec
from interp.extend.prompts import ALONE
from interp.extend.training import Split
from interp_experiments.chance import below, some
from interp_experiments.robustlr import language
from interp_experiments.robustlr.evaluation_sets import sources
from interp_experiments.robustlr.prompts import made_by
from interp_experiments.robustlr.sampling import Sampled, Words, sample
from interp_experiments.robustlr.solver import Worlds

TRAINING_SETS: Mapping[str, tuple[language.Operator, ...]] = {
    "NOT": (),
    "AND+NOT": ("and",),
    "OR+NOT": ("or",),
    "All": ("and", "or"),
}
"""The operators in the rule bodies of each set; all sets have negation."""

SPLITS: Mapping[Split, int] = {"train": 50_000, "dev": 10_000, "test": 10_000}
"""Instances in each published split (Table 7), here rounded down to whole theories."""

STATEMENTS = ("true", "true-negated", "false", "false-negated", "unknown", "unknown-negated")
"""The statements of a whole theory, named by label and by whether they are negated."""


def training_set(
    name: str,
    split: Split,
    seed: int,
    distractors: int | None = None,
    theories: int | None = None,
) -> language.Groups:
    """The theories of one split of one training set, with their statements.

    A whole theory has six statements. A short theory has one statement and only the sentences that
    decide it and a few others; successive theories cycle through the six kinds of statement. Here
    counts can give labels away: a statement is Unknown if a theory without others has no fact.

    `distractors` is the largest number of sentences in a short theory that do not decide its
    statement; the number kept is drawn uniformly between 0 and it. If None, theories are whole.
    `theories` is the number of whole theories, or a sixth of that of short ones (None: published).
    """
    whole = distractors is None
    versions = STATEMENTS if whole else ("statement",)
    number = SPLITS[split] if theories is None else theories * len(STATEMENTS)
    parts = [name, split] if whole else [name, str(distractors), split]
    theory_id = f"{'-'.join(parts)}-{{:0{5 if whole else 6}d}}".format

    def group(index: int) -> tuple[language.Instance, ...]:
        rng = random.Random(" ".join(["robustlr", *parts, str(seed), str(index)]))
        while True:
            sampled = sample(rng, Words.of("real"), TRAINING_SETS[name])
            theory, statements = sampled.theory, balanced(rng, sampled)
            if statements and distractors is not None:
                statements = [statements[index % len(statements)]]
                theory = cut(rng, theory, statements[0][0], below(rng, distractors + 1))
            if statements and split_of(theory) == split and confirmed(theory, statements):
                return tuple(
                    language.Instance.alone(theory_id(index), name, version, theory, question)
                    for version, question in zip(versions, statements, strict=True)
                )

    return language.Groups(name, versions, number // len(versions), theory_id, group)


def balanced(rng: random.Random, sampled: Sampled) -> list[language.Question]:
    """The six `STATEMENTS` with their labels; empty if the theory lacks any of them."""
    affirmed, denied = (
        some(rng, [one for one in sampled.proved if one.positive is positive], 1)
        for positive in (True, False)
    )
    unknown = some(rng, sampled.unproved, 2)
    if not affirmed or not denied or len(unknown) < 2:
        return []
    (yes,), (no,) = affirmed, denied
    return [
        *((one, language.Verdict.TRUE) for one in (yes, no)),
        *((one.negated, language.Verdict.FALSE) for one in (no, yes)),
        *(
            (language.Literal(one.predicate, positive, one.inverted), language.Verdict.UNKNOWN)
            for one, positive in zip(unknown, (True, False), strict=True)
        ),
    ]


def split_of(theory: language.Theory) -> Split:
    """A theory's split, whatever the order and wording of its sentences; a third are in each."""
    content = "\n".join(sorted(map(str, theory.sentences)))
    number = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big")
    return tuple(SPLITS)[number % len(SPLITS)]


def confirmed(theory: language.Theory, statements: Iterable[language.Question]) -> bool:
    """Whether the solver agrees with these labels."""
    try:
        worlds = Worlds.of(theory)
    except UserError:  # The theory is too large to enumerate.
        return False
    return all(worlds.verdict(statement) is label for statement, label in statements)


def cut(
    rng: random.Random, theory: language.Theory, statement: language.Literal, distractors: int
) -> language.Theory:
    """The theory, cut to the sentences that decide a statement and `distractors` others.

    If no sentence bears on the statement, one rule that mentions its predicate is kept.
    """
    needed = sources(theory, statement)
    if not needed:
        about = [
            rule
            for rule in theory.rules
            if any(one.predicate == statement.predicate for one in rule.literals)
        ]
        needed = frozenset(some(rng, about, 1))
    others = [sentence for sentence in theory.sentences if sentence not in needed]
    return theory.only(needed.union(some(rng, others, distractors)))


MOST_THEORIES = 10**7


class RobustLRTraining(TrainSpec):
    """Learn whether a theory makes a statement True, False or Unknown."""

    name = "robustlr"

    train_set: OneOf["All", "NOT", "AND+NOT", "OR+NOT"] = "All"
    """which operators the theories have: All, NOT, AND+NOT or OR+NOT"""
    theories: Annotated[int, Field(ge=1, le=MOST_THEORIES)] = SPLITS["train"] // len(STATEMENTS)
    """number of theories to train on, each with six statements"""
    held_out: Annotated[int, Field(ge=1, le=MOST_THEORIES)] = SPLITS["dev"] // len(STATEMENTS)
    """number of theories in each held-out split, each with six statements"""

    distractors: Annotated[int, Field(ge=0, le=1000)] | None = None
    """give each statement its own theory, with at most this many sentences that do not decide it
    (default: six statements share a whole theory, as published)"""

    def prompts(self, split: Split) -> PromptSet:
        """The statements of a split's theories; no theory is in two splits."""
        number = self.theories if split == "train" else self.held_out
        return made_by(
            [training_set(self.train_set, split, self.seed, self.distractors, number)],
            ALONE,
            system=f"robustlr-{self.train_set}",
            seed=self.seed,
            description={"data": "generated", "split": split},
        )
