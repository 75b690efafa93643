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


@dataclass(frozen=True, slots=True)
class Formula:
    """A propositional variable, or an operator with the formulas that it applies to."""

    sign: str
    """The name of a variable, or ¬, □ (necessary), ◇ (possible), ∧, ∨ (inclusive) or →."""
    parts: tuple["Formula", ...] = ()
    """None of a variable, one of ¬, □ and ◇, and two of the others."""

    def __str__(self) -> str:
        told = [f"({part})" if len(part.parts) > 1 else str(part) for part in self.parts]
        return self.sign.join(told) if len(told) > 1 else "".join([self.sign, *told])


def negated(formula: Formula) -> Formula:
    """The formula's negation."""
    return Formula("¬", (formula,))


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
        case Formula(name, ()):
            return name in world
        case Formula("□" | "◇" as operator, (inner,)):
            quantifier = all if operator == "□" else any
            return quantifier(holds(inner, other, seen) for other in seen)
    one, *others = (holds(part, world, seen) for part in formula.parts)
    truths = {"¬": not one, "∧": one and all(others), "∨": one or any(others)}
    return truths.get(formula.sign, not one or all(others))  # →


def structures(atoms: frozenset[str]) -> Iterator[tuple[World, frozenset[World]]]:
    """Every actual world over the atoms with every nonempty set of worlds that all worlds see.

    Worlds that agree on all atoms count as one.
    """
    worlds = [frozenset(true) for true in _subsets(sorted(atoms))]
    for seen in _subsets(worlds):
        if seen:
            yield from ((actual, frozenset(seen)) for actual in worlds)


def atoms_of(formula: Formula) -> frozenset[str]:
    """The names of the variables in a formula."""
    if not formula.parts:
        return frozenset({formula.sign})
    return frozenset[str]().union(*map(atoms_of, formula.parts))


def _subsets(items: list[T]) -> Iterator[tuple[T, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))
