"""A theory's verdict on a statement, and the sentences that prove it (Section 2).

Classical propositional logic is decided by truth tables:

1. Write the theory as clauses over numbered predicates; a literal is a predicate's number, with a
   minus sign if it is negated.
2. Propagate units: literals that facts and rules decide without a table.
3. Split the remaining clauses into parts that share no predicate.
4. Enumerate each part: a table is one integer with a bit for each assignment of the part's
   predicates, so one operation on Python's long integers handles all assignments.

A proof set is minimal if all of its sentences are needed. A conclusion that follows in several
ways has several minimal sets of different sizes; the paper's G(T, s) is one, it is not said which.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from interp import UserError
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, Verdict

MOST_PREDICATES = 20
"""Largest number n of predicates in one table, which has 2 ** n assignments."""


class Clause(NamedTuple):
    """A disjunction: at least one of its literals is true."""

    literals: tuple[int, ...]
    sentence: int
    """The index of its sentence in the theory."""


class TruthTable(NamedTuple):
    """The assignments to some predicates under which all clauses about them are true."""

    predicates: Sequence[int]
    models: int
    """Bit b is set if assignment b, whose bit i is the truth of predicate i, is a model."""

    def entails(self, literal: int) -> bool:
        """Whether a literal is true in all models."""
        column = columns(len(self.predicates))[self.predicates.index(abs(literal))]
        return not (self.models & ~column if literal > 0 else self.models & column)


@dataclass(frozen=True)
class Worlds:
    """All assignments that make a theory true."""

    numbers: Mapping[Predicate, int]
    """Each predicate's number, from 1."""
    known: Mapping[int, Clause]
    """Literals that follow by unit propagation, in the order found, each with its clause."""
    tables: Mapping[int, TruthTable]
    """The table for each predicate that propagation leaves undecided."""
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
        tables = [table(part) for part in parts(rest)]
        by_predicate = {number: one for one in tables for number in one.predicates}
        return cls(numbers, known, by_predicate, all(one.models for one in tables))

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
        found = self.tables.get(abs(literal))
        return literal in self.known or (found is not None and found.entails(literal))


def verdict(theory: Theory, statement: Literal) -> Verdict:
    """A theory's verdict on a statement (Section 2); raises what `Worlds` raises."""
    return Worlds.of(theory).verdict(statement)


def clauses_of(theory: Theory, numbers: Mapping[Predicate, int]) -> list[Clause]:
    """The theory in conjunctive normal form, each clause with the index of its sentence."""
    return [
        Clause(literals, place)
        for place, sentence in enumerate(theory.sentences)
        for literals in _written(sentence, numbers)
    ]


def _written(
    sentence: Literal | Rule, numbers: Mapping[Predicate, int]
) -> Iterable[tuple[int, ...]]:
    def number(literal: Literal) -> int:
        found = numbers[literal.predicate]
        return found if literal.positive else -found

    if isinstance(sentence, Literal):
        return [(number(sentence),)]
    denied = [-number(literal) for literal in sentence.body]
    bodies = [tuple(denied)] if sentence.operator == "and" else [(one,) for one in denied]
    return [
        tuple(dict.fromkeys((*body, number(head)))) for body in bodies for head in sentence.head
    ]


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


def parts(clauses: Sequence[Clause]) -> list[list[Clause]]:
    """The clauses, divided into groups that share no predicate."""
    found: list[tuple[set[int], list[Clause]]] = []
    for clause in clauses:
        predicates, members = set(map(abs, clause.literals)), [clause]
        apart = []
        for others, theirs in found:
            if predicates.isdisjoint(others):
                apart.append((others, theirs))
            else:
                predicates |= others
                members = theirs + members
        found = [*apart, (predicates, members)]
    return [members for _, members in found]


def table(clauses: Sequence[Clause]) -> TruthTable:
    """The assignments under which all clauses are true (UserError: too many predicates)."""
    predicates = sorted({abs(literal) for clause in clauses for literal in clause.literals})
    if len(predicates) > MOST_PREDICATES:
        raise UserError(
            f"{len(predicates)} predicates of the theory depend on each other; expected at most "
            f"{MOST_PREDICATES}, whose truth table can be enumerated"
        )
    everything = (1 << (1 << len(predicates))) - 1
    column = dict(zip(predicates, columns(len(predicates)), strict=True))
    models = everything
    for clause in clauses:
        holds = 0
        for literal in clause.literals:
            holds |= column[literal] if literal > 0 else everything ^ column[-literal]
        models &= holds
    return TruthTable(predicates, models)


@lru_cache(maxsize=MOST_PREDICATES + 1)
def columns(predicates: int) -> tuple[int, ...]:
    """Each predicate's column in a truth table: bit b of column i is bit i of b."""
    made = []
    for place in range(predicates):
        width = 1 << place
        column, width = ((1 << width) - 1) << width, 2 * width
        while width < 1 << predicates:
            column |= column << width
            width *= 2
        made.append(column)
    return tuple(made)


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
