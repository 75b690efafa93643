"""A theory's verdict on a statement, and the sentences that prove it (Section 2).

Classical propositional logic is decided by cases (Davis, Logemann and Loveland, 1962): in each part
of the clauses that shares no predicate with the others, both values of a predicate are tried, each
time with all literals that facts and rules then decide alone, and so on. Literals are numbers of
predicates, with a minus sign if they are negated.

A proof set is minimal if all of its sentences are needed. A conclusion that follows in several
ways has several minimal sets of different sizes; the paper's G(T, s) is one, it is not said which.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interp import UserError
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, Verdict

MOST_PREDICATES = 20
"""Largest number n of predicates that depend on each other; they have 2 ** n assignments."""


class Clause(NamedTuple):
    """A disjunction: at least one of its literals is true."""

    literals: tuple[int, ...]
    sentence: int
    """The index of its sentence in the theory."""


@dataclass(frozen=True)
class Worlds:
    """All assignments that make a theory true."""

    numbers: Mapping[Predicate, int]
    """Each predicate's number, from 1."""
    known: Mapping[int, Clause]
    """Literals that follow by unit propagation, in the order found, each with its clause."""
    undecided: Mapping[int, Sequence[Clause]]
    """For each predicate that propagation leaves undecided, its part of the clauses."""
    consistent: bool
    """Whether any assignment makes the theory true."""

    @classmethod
    def of(cls, theory: Theory) -> "Worlds":
        """The worlds of a theory (UserError: too many predicates depend on each other)."""
        numbers: dict[Predicate, int] = {}
        for literal in theory.literals():
            numbers.setdefault(literal.predicate, len(numbers) + 1)
        known, rest = propagate(clauses_of(theory, numbers))
        if rest is None:
            return cls(numbers, known, {}, consistent=False)
        pieces = parts(rest)
        undecided = {number: part for predicates, part in pieces for number in predicates}
        return cls(numbers, known, undecided, all(satisfiable(part) for _, part in pieces))

    def verdict(self, statement: Literal) -> Verdict:
        """The theory's verdict on a statement; Unknown if neither it nor its negation is entailed.

        Raises:
            UserError: the theory contradicts itself, and so entails every statement.
        """
        if not self.consistent:
            raise UserError("the theory contradicts itself; expected facts and rules that agree")
        number = self.numbers.get(statement.predicate)
        if number is None:
            return Verdict.UNKNOWN
        literal = number if statement.positive else -number
        if self._entails(literal):
            return Verdict.TRUE
        return Verdict.FALSE if self._entails(-literal) else Verdict.UNKNOWN

    def _entails(self, literal: int) -> bool:
        denied = [*self.undecided.get(abs(literal), ()), Clause((-literal,), -1)]
        return literal in self.known or not satisfiable(denied)


def verdict(theory: Theory, statement: Literal) -> Verdict:
    """A theory's verdict on a statement (Section 2); raises what `Worlds` raises."""
    return Worlds.of(theory).verdict(statement)


def clauses_of(theory: Theory, numbers: Mapping[Predicate, int]) -> list[Clause]:
    """The theory in conjunctive normal form, each clause with the index of its sentence."""

    def number(literal: Literal) -> int:
        predicate = numbers[literal.predicate]
        return predicate if literal.positive else -predicate

    clauses = []
    for place, sentence in enumerate(theory.sentences):
        rule = sentence if isinstance(sentence, Rule) else Rule((), (sentence,))
        denied = [-number(literal) for literal in rule.body]
        bodies = [denied] if rule.operator == "and" else [[each] for each in denied]
        clauses += [
            Clause(tuple(dict.fromkeys((*body, number(head)))), place)
            for body in bodies
            for head in rule.head
        ]
    return clauses


def propagate(clauses: Sequence[Clause]) -> tuple[dict[int, Clause], list[Clause] | None]:
    """The literals that follow from units, and the undecided clauses (None if one is false)."""
    known: dict[int, Clause] = {}
    while True:
        rest, before = [], len(known)
        for clause in clauses:
            if any(literal in known for literal in clause.literals):
                continue
            undecided = [literal for literal in clause.literals if -literal not in known]
            if not undecided:
                return known, None
            if len(undecided) == 1:
                known[undecided[0]] = clause
            else:
                rest.append(clause)
        clauses = rest
        if len(known) == before:
            return known, [
                Clause(tuple(one for one in clause.literals if -one not in known), clause.sentence)
                for clause in clauses
            ]


def parts(clauses: Sequence[Clause]) -> list[tuple[set[int], list[Clause]]]:
    """Parts of the clauses that share no predicate, by predicates (UserError: too many of them)."""
    together: dict[int, set[int]] = {}
    for clause in clauses:
        predicates = {abs(literal) for literal in clause.literals}
        joined = predicates.union(*(together.get(predicate, ()) for predicate in predicates))
        together.update(dict.fromkeys(joined, joined))
    most = max(map(len, together.values()), default=0)
    if most > MOST_PREDICATES:
        raise UserError(
            f"{most} predicates of the theory depend on each other; expected at most "
            f"{MOST_PREDICATES}, of which every assignment can be tried"
        )
    distinct = {min(joined): joined for joined in together.values()}
    return [
        (joined, [clause for clause in clauses if abs(clause.literals[0]) in joined])
        for joined in distinct.values()
    ]


def satisfiable(clauses: Sequence[Clause]) -> bool:
    """Whether some assignment makes all clauses true."""
    _, rest = propagate(clauses)
    if not rest:
        return rest is not None
    literal = rest[0].literals[0]
    return any(satisfiable([*rest, Clause((one,), -1)]) for one in (literal, -literal))


ProofSet = frozenset[Literal | Rule]

MOST_TRIED = 500
"""Maximum number of ways to omit sentences that the search for all proof sets tries."""


def proof_set(theory: Theory, statement: Literal) -> ProofSet:
    """A minimal set of sentences that yields the theory's verdict; empty if that is Unknown.

    The search starts from the sentences that unit propagation uses, and drops those that are not
    needed, facts before rules. Raises what `Worlds` raises.
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
    """All minimal proof sets, first that of `proof_set` (Reiter 1987, hitting-set tree).

    At most `MOST_TRIED` ways to omit sentences are tried; each further set doubles their number.
    """
    proofs: list[ProofSet] = []
    seen: set[ProofSet] = set()
    left_out: list[ProofSet] = [frozenset()]
    for _ in range(MOST_TRIED):
        if not left_out:
            return
        without = left_out.pop()
        proof = next((one for one in proofs if not one & without), None)
        if proof is None:
            proof = proof_set(theory.only(frozenset(theory.sentences) - without), statement)
            if proof:
                proofs.append(proof)
                yield proof
        more = {without | {sentence} for sentence in proof} - seen
        seen |= more
        left_out += sorted(more, key=lambda fewer: sorted(map(str, fewer)), reverse=True)


def _used(theory: Theory, statement: Literal, worlds: Worlds) -> ProofSet:
    """The sentences from which unit propagation decides the statement; all if it cannot."""
    number = worlds.numbers[statement.predicate]
    reached = next((literal for literal in (number, -number) if literal in worlds.known), None)
    if reached is None:
        return frozenset(theory.sentences)
    used, waiting, seen = set(), [reached], {reached}
    while waiting:
        literal = waiting.pop()
        clause = worlds.known[literal]
        used.add(theory.sentences[clause.sentence])
        needed = {-other for other in clause.literals if other != literal} - seen
        seen |= needed
        waiting += needed
    return frozenset(used)
