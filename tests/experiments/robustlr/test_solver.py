"""Verdicts by hand and by z3; proof sets by trying all sets of sentences."""

import os
import random
from itertools import chain, combinations, pairwise

import pytest

from interp.errors import UserError
from interp_experiments.robustlr import solver
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, Verdict
from interp_experiments.robustlr.solver import (
    MOST_PREDICATES,
    Worlds,
    proof_set,
    proof_sets,
    verdict,
)
from tests.experiments.robustlr.random_theories import random_theory

THEORIES = int(os.environ.get("ROBUSTLR_THEORIES", "300"))
"""How many random theories are compared with z3."""


def is_(word, name="Anna"):
    return Literal(Predicate(word, name))


P, Q, R, S, T = map(is_, ("tall", "kind", "round", "shy", "smart"))


@pytest.mark.parametrize(
    ("facts", "rules", "statement", "expected"),
    [
        ((P,), (Rule((P,), (Q,)),), Q, "True"),
        ((P,), (Rule((P,), (Q,)),), Q.negated, "False"),
        ((), (Rule((P,), (Q,)),), Q, "Unknown"),
        ((Q.negated,), (Rule((P,), (Q,)),), P, "False"),  # modus tollens
        ((P,), (Rule((P, R), (Q,)),), Q, "Unknown"),
        ((P,), (Rule((P, R), (Q,), "or"),), Q, "True"),
        ((P,), (Rule((P,), (Q, R)),), R, "True"),
        ((), (Rule((P,), (Q,)), Rule((P.negated,), (Q,))), Q, "True"),  # by cases
        ((), (Rule((P,), (P.negated,)),), P, "False"),
        ((P,), (), is_("absent"), "Unknown"),
        # The worked theory of the paper.
        ((P, R.negated), (Rule((P, S), (Q,), "or"), Rule((Q,), (T,))), T.negated, "False"),
    ],
)
def test_verdicts_by_hand(facts, rules, statement, expected):
    assert verdict(Theory(facts, rules), statement) == expected


@pytest.mark.parametrize(
    ("facts", "rules"),
    [
        ((P, P.negated), ()),
        ((P,), (Rule((P,), (Q,)), Rule((P,), (Q.negated,)))),
        # No unit says so, the table does.
        ((), tuple(Rule((a,), (b,)) for a in (P, P.negated) for b in (Q, Q.negated))),
    ],
)
def test_a_theory_that_contradicts_itself_is_recognized(facts, rules):
    theory = Theory(facts, rules)
    assert not Worlds.of(theory).consistent
    with pytest.raises(UserError, match=r"theory.*facts.*rules"):
        verdict(theory, R)


def test_too_many_dependent_predicates_are_refused_in_words():
    chain = [is_("tall", f"Name{number}") for number in range(MOST_PREDICATES + 1)]
    rules = tuple(Rule((one,), (other,)) for one, other in pairwise(chain))
    with pytest.raises(
        UserError, match=f"\\b{MOST_PREDICATES + 1} predicates\\b.*\\b{MOST_PREDICATES}\\b"
    ):
        verdict(Theory((), rules), chain[0])
    # Facts decide all of them without a table.
    assert verdict(Theory((chain[0],), rules), chain[-1]) is Verdict.TRUE


def ours(theory, statement):
    worlds = Worlds.of(theory)
    return str(worlds.verdict(statement)) if worlds.consistent else None


def test_random_theories_agree_with_z3():
    z3 = pytest.importorskip("z3")

    def said(literal):
        variable = z3.Bool(str(literal.predicate))
        return variable if literal.positive else z3.Not(variable)

    def formula(sentence):
        if isinstance(sentence, Literal):
            return said(sentence)
        join = {"and": z3.And, "or": z3.Or}[sentence.operator]
        return z3.Implies(join(*map(said, sentence.body)), z3.And(*map(said, sentence.head)))

    def entailed(theory, literal):
        solver = z3.Solver()
        solver.add(*map(formula, theory.sentences))
        if literal is not None:
            solver.add(z3.Not(said(literal)))
        return solver.check() == z3.unsat

    counts = dict.fromkeys((None, "True", "False", "Unknown"), 0)
    rng = random.Random(2)
    for _ in range(THEORIES):
        theory, statement = random_theory(rng)
        if entailed(theory, None):
            expected = None
        elif entailed(theory, statement):
            expected = "True"
        else:
            expected = "False" if entailed(theory, statement.negated) else "Unknown"
        assert ours(theory, statement) == expected
        counts[expected] += 1
    assert min(counts.values()) > THEORIES / 50


def test_one_proof_by_hand_and_either_side_of_a_disjunction():
    used = Rule((P,), (Q,))
    theory = Theory((R, P), (Rule((R,), (S,)), used))
    assert proof_set(theory, Q) == proof_set(theory, Q.negated) == {P, used}
    assert list(proof_sets(theory, Q)) == [frozenset({P, used})]
    assert proof_set(theory, P) == {P}
    assert proof_set(theory, Literal(Predicate("tall", "Bob"))) == frozenset()
    rule = Rule((P, R), (Q,), "or")
    found = list(proof_sets(Theory((P, R), (rule,)), Q))
    assert found == [frozenset({P, rule}), frozenset({R, rule})]


def test_many_proofs_are_all_found_without_all_ways_to_leave_some_out(monkeypatch):
    """Twelve causes of one effect: 4,096 ways to leave some out, of which few are needed."""
    causes = [Literal(Predicate(f"cause {number}", "Anna")) for number in range(12)]
    rules = tuple(Rule((cause,), (Q,)) for cause in causes)
    asked = []
    monkeypatch.setattr(solver, "proof_set", lambda *given: asked.append(1) or proof_set(*given))
    found = list(proof_sets(Theory(tuple(causes), rules), Q))
    assert set(found) == {frozenset(pair) for pair in zip(causes, rules, strict=True)}
    assert len(asked) <= solver.MOST_TRIED


def subsets(items):
    return map(frozenset, chain.from_iterable(combinations(items, n) for n in range(len(items))))


def test_random_proof_sets_are_all_that_are_minimal():
    rng, counts = random.Random(3), set()
    for _ in range(150):
        theory, statement = random_theory(rng)
        if not Worlds.of(theory).consistent or len(set(theory.sentences)) > 7:
            continue
        expected = verdict(theory, statement)
        if expected is Verdict.UNKNOWN:
            continue
        sentences = frozenset(theory.sentences)
        enough = [
            kept
            for kept in (*subsets(sentences), sentences)
            if verdict(theory.only(kept), statement) is expected
        ]
        minimal = {kept for kept in enough if not any(other < kept for other in enough)}
        found = list(proof_sets(theory, statement))
        assert len(found) == len(set(found))
        assert set(found) == minimal
        assert found[0] == proof_set(theory, statement)
        counts.add(len(found))
    assert {1, 2} <= counts
