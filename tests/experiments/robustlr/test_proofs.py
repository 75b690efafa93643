import random
from itertools import chain, combinations

from interp_experiments.robustlr import solver
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, Verdict
from interp_experiments.robustlr.solver import Worlds, proof_set, proof_sets, verdict
from tests.experiments.robustlr.random_theories import random_theory
S = Literal(Predicate("shy", "Anna"))


def test_one_proof_by_hand():
    used = Rule((P,), (Q,))
    theory = Theory((R, P), (Rule((R,), (S,)), used))
    assert proof_set(theory, Q) == proof_set(theory, Q.negated) == {P, used}
    assert list(proof_sets(theory, Q)) == [frozenset({P, used})]
    assert proof_set(theory, P) == {P}
    assert proof_set(theory, Literal(Predicate("tall", "Bob"))) == frozenset()


def test_either_side_of_a_disjunction_is_a_proof():
    rule = Rule((P, R), (Q,), "or")
    found = list(proof_sets(Theory((P, R), (rule,)), Q))
    assert found == [frozenset({P, rule}), frozenset({R, rule})]


def test_a_proof_by_cases_needs_no_fact():
    rules = (Rule((P,), (Q,)), Rule((P.negated,), (Q,)))
    assert proof_set(Theory((), rules), Q) == set(rules)


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
