"""Proof sets: the facts and rules that a theory needs for its verdict (Section 2).

A set of sentences is minimal here if none of them can be spared. There may be several minimal
sets, of different sizes, where a conclusion follows in more than one way, as from either side of a
disjunction. The published G(T, s) is one of them, without a word on which.
"""

from collections.abc import Iterator

from interp_experiments.robustlr.language import Literal, Rule, Theory, Verdict
from interp_experiments.robustlr.solver import Worlds, verdict

ProofSet = frozenset[Literal | Rule]

MOST_TRIED = 500
"""Ways to leave sentences out that are tried in search of further sets."""


def proof_set(theory: Theory, statement: Literal) -> ProofSet:
    """A minimal set of sentences with the theory's verdict; empty where that is Unknown.

    Of several sets it is one that propagation of units finds first: facts are tried before rules,
    each in its order.

    Raises:
        UserError: the theory contradicts itself, or is too large to enumerate.
    """
    worlds = Worlds.of(theory)
    expected = worlds.verdict(statement)
    if expected is Verdict.UNKNOWN:
        return frozenset()
    kept = _used(theory, statement, worlds)
    for sentence in theory.sentences:
        fewer = kept - {sentence}
        if sentence in kept and verdict(theory.only(fewer), statement) is expected:
            kept = fewer
    return kept


def proof_sets(theory: Theory, statement: Literal) -> Iterator[ProofSet]:
    """The minimal sets, each once, the one of `proof_set` first (Reiter 1987, hitting-set tree).

    All of them, unless more than `MOST_TRIED` ways to leave sentences out would have to be tried,
    which double with each further set; then those that are found by so many.

    Raises:
        UserError: as `proof_set`.
    """
    found: list[ProofSet] = []
    seen: set[ProofSet] = set()
    left_out: list[ProofSet] = [frozenset()]
    for _ in range(MOST_TRIED):
        if not left_out:
            return
        without = left_out.pop()
        proof = next((one for one in found if not one & without), None)
        if proof is None:
            proof = proof_set(theory.only(frozenset(theory.sentences) - without), statement)
            if proof:
                found.append(proof)
                yield proof
        more = {without | {sentence} for sentence in proof} - seen
        seen |= more
        left_out += sorted(more, key=lambda fewer: sorted(map(str, fewer)), reverse=True)


def _used(theory: Theory, statement: Literal, worlds: Worlds) -> ProofSet:
    """The sentences from which units propagate to the statement; all where they do not."""
    number = worlds.numbers[statement.predicate]
    reached = next((literal for literal in (number, -number) if literal in worlds.known), None)
    if reached is None:
        return frozenset(theory.sentences)
    used, waiting, seen = set(), [reached], {reached}
    while waiting:
        literal = waiting.pop()
        clause = worlds.known[literal]
        used.add(theory.sentences[clause.sentence])
        behind = {-other for other in clause.literals if other != literal} - seen
        seen |= behind
        waiting += behind
    return frozenset(used)
