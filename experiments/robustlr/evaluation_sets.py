"""The six evaluation sets: groups of a base theory and its variants, each from its own seed.

A group is drawn again until the solver confirms all its labels. Groups are independent: each can be
generated separately, and a smaller set consists of the first groups of a larger one.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import ClassVar, NamedTuple

from interp import UserError
from interp_experiments.chance import below, happens, pick, some
from interp_experiments.robustlr.language import Instance, Literal, Rule, Theory, Verdict
from interp_experiments.robustlr.sampling import Sampled, Words, as_literal, sample
from interp_experiments.robustlr.solver import proof_set, verdict
from interp_experiments.robustlr.variants import (
    CONTRAST_SETS,
    EQUIVALENCE_SETS,
    contraposed,
    editable,
    edited,
    with_one_body,
    with_one_head,
)

EVALUATION_SETS = (*CONTRAST_SETS, *EQUIVALENCE_SETS)

INSTANCES = 20_000
"""Instances in each published set (Table 8), here rounded down to whole groups."""


@dataclass(frozen=True)
class GroupMaker:
    """Makes the groups of one evaluation set."""

    set: str
    seed: int
    words: Words
    distractors: bool = True
    """Whether theories keep sentences that decide no label. If not, contrast sets keep only the
    base's proof."""

    @property
    def versions(self) -> tuple[str, ...]:
        """The names of a group's members, the base first."""
        if self.set in EQUIVALENCE_SETS:
            return ("base", EQUIVALENCE_SETS[self.set])
        return tuple(edit.version for edit in CONTRAST_SETS[self.set])

    def __len__(self) -> int:
        return INSTANCES // len(self.versions)

    def theory_id(self, index: int) -> str:
        """The id that the members of a group share."""
        return f"{self.set}-{index:05d}"

    def group(self, index: int) -> tuple[Instance, ...]:
        """A base and its variants; a seed gives the same group on every platform."""
        rng = random.Random(f"robustlr {self.set} {self.seed} {index}")
        labels = tuple(Verdict)[: 3 if self.set == "C-ES" else 2]
        base = labels[index % len(labels)]
        make = partial(Instance, theory_id=self.theory_id(index), set=self.set, base_label=base)
        draw = self._contrast if self.set in CONTRAST_SETS else self._equivalence
        while True:
            try:
                members = draw(rng, base, make)
                if members and all(verdict(m.theory, m.statement) is m.label for m in members):
                    return members
            except UserError:  # The theory is too large to enumerate.
                continue

    def _equivalence(
        self, rng: random.Random, base: Verdict, make: Callable[..., Instance]
    ) -> tuple[Instance, ...]:
        """A base and its paraphrase; empty if the drawn theory has none of this kind."""
        pair = _PAIRS[self.set](rng, self.words, base)
        if pair is None:
            return ()
        theory = pair.theory
        if not self.distractors:
            theory = theory.only(sources(theory, pair.statement) | set(pair.rules))
        told = {"base": theory, "paraphrase": pair.paraphrase(theory)}
        return tuple(
            make(version=version, group=group, theory=one, statement=pair.statement, label=base)
            for version, (group, one) in zip(self.versions, told.items(), strict=True)
        )

    def _contrast(
        self, rng: random.Random, base: Verdict, make: Callable[..., Instance]
    ) -> tuple[Instance, ...]:
        """All edits; empty if the drawn theory cannot be edited."""
        sampled = sample(rng, self.words)
        theory = sampled.theory
        fitting = [rule for rule in theory.rules if editable(theory, rule, self.set)]
        rule = draw_last_rule(rng, sampled, base, fitting)
        unseen = as_literal(rng, self.words.predicate(rng, sampled.people))
        if rule is None or unseen.predicate in theory.predicates():
            return ()
        statement = statement_of(rule, base)
        if not self.distractors:
            theory = theory.only(proof_set(theory, statement))
        return tuple(
            make(
                version=edit.version,
                group=edit.group,
                theory=edited(theory, rule, unseen, edit),
                statement=statement,
                label=edit.expected(base),
            )
            for edit in CONTRAST_SETS[self.set]
        )


def draw_last_rule(
    rng: random.Random, sampled: Sampled, base: Verdict, rules: Sequence[Rule]
) -> Rule | None:
    """A drawn rule with a provable head, or None; half of the statements are negated."""
    negated = happens(rng, 0.5)
    proved = set(sampled.proved)
    fitting = [
        rule
        for rule in rules
        if rule.head[0] in proved and statement_of(rule, base).positive is not negated
    ]
    return pick(rng, fitting) if fitting else None


def statement_of(rule: Rule, base: Verdict) -> Literal:
    """The statement that a rule makes True or False, as the label `base` requires."""
    return rule.head[0] if base is Verdict.TRUE else rule.head[0].negated


class Pair(NamedTuple):
    """A base theory with its statement and its paraphrase."""

    statement: Literal
    theory: Theory
    paraphrase: Callable[[Theory], Theory]
    rules: tuple[Rule, ...] = ()
    """The rules that are merged into one."""


def contraposed_pair(rng: random.Random, words: Words, base: Verdict) -> Pair | None:
    """A theory without "and" in rule bodies, so that its contrapositives are in the language."""
    sampled = sample(rng, words, ("or",))
    theory = sampled.theory
    if base is Verdict.UNKNOWN:
        if not sampled.unproved:
            return None
        drawn = pick(rng, sampled.unproved)
        statement = Literal(drawn.predicate, happens(rng, 0.5), drawn.inverted)
    else:
        rule = draw_last_rule(rng, sampled, base, theory.rules)
        if rule is None:
            return None
        statement = statement_of(rule, base)
    return Pair(statement, theory, contraposed)


def one_head_pair(rng: random.Random, words: Words, base: Verdict) -> Pair | None:
    """A theory in which a second rule has the same body as the last rule."""
    sampled = sample(rng, words)
    rule = draw_last_rule(rng, sampled, base, sampled.theory.rules)
    proved = set(sampled.proved)
    others = [other for other in sampled.theory.rules if other != rule and other.head[0] in proved]
    if rule is None or not others:
        return None
    other = pick(rng, others)
    second = Rule(rule.body, other.head, rule.operator, other.style)
    theory = sampled.theory.with_rule(other, second)
    merge = partial(with_one_head, one=rule, other=second)
    return Pair(statement_of(rule, base), theory, merge, (rule, second))


def one_body_pair(rng: random.Random, words: Words, base: Verdict) -> Pair | None:
    """A theory in which the conclusion of the last rule also follows from another literal."""
    sampled = sample(rng, words)
    simple = [rule for rule in sampled.theory.rules if rule.simple]
    rule = draw_last_rule(rng, sampled, base, simple)
    others = [one for one in sampled.proved if rule and one not in rule.literals]
    if rule is None or not others:
        return None
    second = Rule((pick(rng, others),), rule.head, style=below(rng, 4))
    without = sampled.theory.with_rule(rule)
    if verdict(Theory(without.facts, (*without.rules, second)), rule.head[0]) is not Verdict.TRUE:
        return None
    rules = (*sampled.theory.rules, second)
    theory = Theory(sampled.theory.facts, tuple(some(rng, rules, len(rules))))
    merge = partial(with_one_body, one=rule, other=second)
    return Pair(statement_of(rule, base), theory, merge, (rule, second))


_PAIRS = {"C-ES": contraposed_pair, "D1-ES": one_head_pair, "D2-ES": one_body_pair}


def sources(theory: Theory, statement: Literal) -> frozenset[Literal | Rule]:
    """The rules from which the statement could be derived, step by step, and the facts they use."""
    reached, rules = {statement.predicate}, set[Rule]()
    while True:
        more = {
            rule
            for rule in theory.rules
            if rule not in rules and any(one.predicate in reached for one in rule.head)
        }
        if not more:
            facts = (fact for fact in theory.facts if fact.predicate in reached)
            return frozenset(rules).union(facts)
        rules |= more
        reached |= {one.predicate for rule in more for one in rule.body}


SIDES = ("base", "edited")


@dataclass(frozen=True)
class EditPairMaker:
    """Makes the pairs of one contrast set, independently of each other."""

    groups: GroupMaker

    versions: ClassVar[tuple[str, ...]] = SIDES

    @property
    def set(self) -> str:
        """The contrast set."""
        return self.groups.set

    def __len__(self) -> int:
        return len(self.groups) * len(self._edits)

    def theory_id(self, index: int) -> str:
        """The id of a pair: the id of its group, followed by the edit."""
        place, edit = divmod(index, len(self._edits))
        return f"{self.groups.theory_id(place)}/{self._edits[edit]}"

    def group(self, index: int) -> tuple[Instance, ...]:
        """The base and one edit; a seed gives the same pair on every platform."""
        place, edit = divmod(index, len(self._edits))
        return tuple(pairs_of(self.groups.group(place)))[edit]

    @property
    def _edits(self) -> list[str]:
        return [edit.version for edit in CONTRAST_SETS[self.set] if edit.label is not Verdict.TRUE]


def pairs_of(members: Sequence[Instance]) -> Iterator[tuple[Instance, Instance]]:
    """The base of a group (its first member), paired with each edit whose label differs."""
    base, *edits = members
    for edit in edits:
        if edit.label is not base.label:
            id_ = f"{base.theory_id}/{edit.version}"
            yield (
                replace(base, theory_id=id_, version=SIDES[0]),
                replace(edit, theory_id=id_, version=SIDES[1]),
            )


def pairs_of_all(instances: Iterable[Instance]) -> list[Instance]:
    """The members of all groups' pairs; in `instances`, the members of a group are adjacent."""
    return [
        member
        for _, group in groupby(instances, key=lambda one: one.theory_id)
        for pair in pairs_of(tuple(group))
        for member in pair
    ]
