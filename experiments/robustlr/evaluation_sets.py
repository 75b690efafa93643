"""The six evaluation sets: groups of a base theory and its variants, each from its own seed.

A group is drawn again until the solver confirms all its labels. Groups are independent: each can be
generated separately, and a smaller set consists of the first groups of a larger one.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from interp import UserError
from interp_experiments.chance import below, happens, pick, some
from interp_experiments.robustlr import variants
from interp_experiments.robustlr.language import Groups, Instance, Literal, Rule, Theory, Verdict
from interp_experiments.robustlr.sampling import Sampled, Words, as_literal, sample
from interp_experiments.robustlr.solver import proof_set, verdict

EVALUATION_SETS = (*variants.CONTRAST_SETS, *variants.EQUIVALENCE_SETS)

INSTANCES = 20_000
"""Instances in each published set (Table 8), here rounded down to whole groups."""


def evaluation_set(name: str, seed: int, words: Words, *, distractors: bool = True) -> Groups:
    """The groups of one evaluation set, the base first.

    Without `distractors`, theories have only sentences that decide a label; those of contrast sets
    have only the base's proof.
    """
    versions = tuple(edit.version for edit in variants.CONTRAST_SETS.get(name, ()))
    versions = versions or ("base", variants.EQUIVALENCE_SETS[name])
    theory_id = f"{name}-{{:05d}}".format
    labels = tuple(Verdict)[: 3 if name == "C-ES" else 2]
    draw = _contrast if name in variants.CONTRAST_SETS else _equivalence

    def group(index: int) -> tuple[Instance, ...]:
        rng = random.Random(f"robustlr {name} {seed} {index}")
        base = labels[index % len(labels)]
        while True:
            with suppress(UserError):  # The theory is too large to enumerate.
                members = tuple(
                    Instance(theory_id(index), name, *drawn)
                    for drawn in draw(name, rng, words, base, distractors)
                )
                if members and all(verdict(m.theory, m.statement) is m.label for m in members):
                    return members

    return Groups(name, versions, INSTANCES // len(versions), theory_id, group)


Drawn = Iterator[tuple[str, str, Verdict, Theory, Literal, Verdict]]
"""The fields of each `Instance` of a group, from its version on."""


def _equivalence(
    name: str, rng: random.Random, words: Words, base: Verdict, distractors: bool
) -> Drawn:
    """A base and its paraphrase; nothing if the drawn theory has none of this kind."""
    pair = _PAIRS[name](rng, words, base)
    if pair is None:
        return
    statement, theory, rules, joint = pair
    if not distractors:
        theory = theory.only(sources(theory, statement).union(rules))
    yield "base", "base", base, theory, statement, base
    told = variants.contraposed(theory)
    if joint:
        one, other = rules
        told = theory.with_rule(one, joint).with_rule(other)
    yield variants.EQUIVALENCE_SETS[name], "paraphrase", base, told, statement, base


def _contrast(
    name: str, rng: random.Random, words: Words, base: Verdict, distractors: bool
) -> Drawn:
    """All edits; nothing if the drawn theory cannot be edited."""
    sampled = sample(rng, words)
    theory = sampled.theory
    fitting = [rule for rule in theory.rules if variants.editable(theory, rule, name)]
    rule = draw_last_rule(rng, sampled, base, fitting)
    unseen = as_literal(rng, words.predicate(rng, sampled.people))
    if rule is None or unseen.predicate in theory.predicates():
        return
    statement = statement_of(rule, base)
    if not distractors:
        theory = theory.only(proof_set(theory, statement))
    for edit in variants.CONTRAST_SETS[name]:
        told, label = variants.edited(theory, rule, unseen, edit), edit.expected(base)
        yield edit.version, edit.group, base, told, statement, label


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
    """A base theory with its statement, and what its paraphrase changes."""

    statement: Literal
    theory: Theory
    rules: tuple[Rule, ...] = ()
    """Two rules that are merged into one; of C-ES none, since every rule is contraposed."""
    joint: Rule | None = None
    """The rule that says what both say, in place of the first."""


def contraposed_pair(rng: random.Random, words: Words, base: Verdict) -> Pair | None:
    """A theory without "and" in rule bodies, so that its contrapositives are in the language."""
    sampled = sample(rng, words, ("or",))
    if base is not Verdict.UNKNOWN:
        rule = draw_last_rule(rng, sampled, base, sampled.theory.rules)
        if rule is None:
            return None
        return Pair(statement_of(rule, base), sampled.theory)
    if not sampled.unproved:
        return None
    drawn = pick(rng, sampled.unproved)
    statement = Literal(drawn.predicate, happens(rng, 0.5), drawn.inverted)
    return Pair(statement, sampled.theory)


def one_head_pair(rng: random.Random, words: Words, base: Verdict) -> Pair | None:
    """A theory in which a second rule has the same body: p ⇒ q and p ⇒ r become p ⇒ q ∧ r."""
    sampled = sample(rng, words)
    rule = draw_last_rule(rng, sampled, base, sampled.theory.rules)
    proved = set(sampled.proved)
    others = [other for other in sampled.theory.rules if other != rule and other.head[0] in proved]
    if rule is None or not others:
        return None
    other = pick(rng, others)
    second = Rule(rule.body, other.head, rule.operator, other.style)
    theory = sampled.theory.with_rule(other, second)
    joint = replace(rule, head=rule.head + second.head)
    return Pair(statement_of(rule, base), theory, (rule, second), joint)


def one_body_pair(rng: random.Random, words: Words, base: Verdict) -> Pair | None:
    """A theory in which a second rule has the same head: p ⇒ q and r ⇒ q become p ∨ r ⇒ q."""
    sampled = sample(rng, words)
    simple = [rule for rule in sampled.theory.rules if len(rule.literals) == 2]
    rule = draw_last_rule(rng, sampled, base, simple)
    others = [one for one in sampled.proved if rule and one not in rule.literals]
    if rule is None or not others:
        return None
    second = Rule((pick(rng, others),), rule.head, style=below(rng, 4))
    if verdict(sampled.theory.with_rule(rule, second), rule.head[0]) is not Verdict.TRUE:
        return None
    rules = (*sampled.theory.rules, second)
    theory = Theory(sampled.theory.facts, tuple(some(rng, rules, len(rules))))
    joint = replace(rule, body=rule.body + second.body, operator="or")
    return Pair(statement_of(rule, base), theory, (rule, second), joint)


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


def edit_pairs(groups: Groups) -> Groups:
    """The pairs of a contrast set: each base with each edit that changes its label."""
    edits = [
        edit.version
        for edit in variants.CONTRAST_SETS[groups.set]
        if edit.label is not Verdict.TRUE
    ]

    def theory_id(index: int) -> str:
        place, edit = divmod(index, len(edits))
        return f"{groups.theory_id(place)}/{edits[edit]}"

    def pair(index: int) -> tuple[Instance, ...]:
        place, edit = divmod(index, len(edits))
        return tuple(pairs_of(groups.group(place)))[edit]

    return Groups(groups.set, SIDES, groups.number * len(edits), theory_id, pair)


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
