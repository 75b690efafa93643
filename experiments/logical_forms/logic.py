"""Propositional modal logic: formulas (paper, formula 1), and whether an argument is valid.

An argument is valid if no Kripke structure makes its premises true and its conclusion false. All
small structures are tried. A structure has an actual world and a nonempty set of worlds that every
world sees.

No formula distinguishes worlds that agree on every atom, so for n atoms at most 2 ** n worlds are
needed. The truth of a formula without nested modalities depends only on the actual world and the
set that it sees, so these structures suffice. Since the set is never empty, whatever is necessary
is possible. Nested modalities are interpreted in the logic of these structures, KD45.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from typing import Literal, TypeVar

Connective = Literal["∧", "∨", "→"]
Operator = Literal["□", "◇"]


@dataclass(frozen=True, slots=True)
class Atom:
    """A propositional variable."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    inner: "Formula"

    def __str__(self) -> str:
        return f"¬{_part(self.inner)}"


@dataclass(frozen=True, slots=True)
class Modal:
    """A formula that is necessary (□) or possible (◇)."""

    operator: Operator
    inner: "Formula"

    def __str__(self) -> str:
        return f"{self.operator}{_part(self.inner)}"


@dataclass(frozen=True, slots=True)
class Binary:
    """Two formulas joined by and (∧), inclusive or (∨), or if ... then (→)."""

    connective: Connective
    left: "Formula"
    right: "Formula"

    def __str__(self) -> str:
        return f"{_part(self.left)}{self.connective}{_part(self.right)}"


Formula = Atom | Not | Modal | Binary


def _part(formula: Formula) -> str:
    return f"({formula})" if isinstance(formula, Binary) else str(formula)


@dataclass(frozen=True, slots=True)
class Argument:
    """Premises and a conclusion; `entails` says whether it is valid."""

    premises: tuple[Formula, ...]
    conclusion: Formula


T = TypeVar("T")

World = frozenset[str]
"""The atoms that are true in a world."""

Consequence = Literal["local", "global"]
"""Whether premises and conclusion must be true in the actual world, or each in all worlds."""


@cache
def entails(argument: Argument, *, consequence: Consequence = "local") -> bool:
    """Whether no structure makes all premises true and the conclusion false.

    They are "local": true in the actual world; or "global": true in every world of the structure,
    as in a rule of inference, which makes p ⊢ □p sound.
    """
    atoms = frozenset(chain.from_iterable(map(atoms_of, (*argument.premises, argument.conclusion))))
    for actual, seen in structures(atoms):
        worlds = {actual, *(seen if consequence == "global" else ())}
        *premises, conclusion = (
            all(holds(formula, world, seen) for world in worlds)
            for formula in (*argument.premises, argument.conclusion)
        )
        if all(premises) and not conclusion:
            return False
    return True


def holds(formula: Formula, world: World, seen: frozenset[World]) -> bool:
    """Whether a formula is true in a world, if every world sees these worlds."""
    match formula:
        case Atom(name):
            return name in world
        case Not(inner):
            return not holds(inner, world, seen)
        case Modal(operator, inner):
            quantifier = all if operator == "□" else any
            return quantifier(holds(inner, other, seen) for other in seen)
        case Binary(connective, left, right):
            one, other = (holds(part, world, seen) for part in (left, right))
            return {"∧": one and other, "∨": one or other, "→": not one or other}[connective]


def structures(atoms: frozenset[str]) -> Iterator[tuple[World, frozenset[World]]]:
    """Every actual world over the atoms with every nonempty set of worlds that all worlds see.

    Worlds that agree on all atoms count as one.
    """
    worlds = [frozenset(true) for true in _subsets(sorted(atoms))]
    for seen in _subsets(worlds):
        if seen:
            yield from ((actual, frozenset(seen)) for actual in worlds)


def atoms_of(formula: Formula) -> frozenset[str]:
    """The names of the atoms in a formula."""
    match formula:
        case Atom(name):
            return frozenset({name})
        case Not(inner) | Modal(_, inner):
            return atoms_of(inner)
        case Binary(_, left, right):
            return atoms_of(left) | atoms_of(right)


def _subsets(items: list[T]) -> Iterator[tuple[T, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))
