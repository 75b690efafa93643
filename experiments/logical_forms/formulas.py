"""Formulas of propositional modal logic (paper, formula 1)."""

from dataclasses import dataclass
from typing import Literal

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
    """Premises and a conclusion; whether it is valid is for `kripke.entails` to say."""

    premises: tuple[Formula, ...]
    conclusion: Formula
