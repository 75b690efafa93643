"""Formulas in English, under an interpretation of their atoms (paper, Appendix B and Table A1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from interp_experiments.logical_forms.formulas import Atom, Binary, Formula, Modal, Not


@dataclass(frozen=True, slots=True)
class Event:
    """The event that an atom denotes: somebody is doing something."""

    name: str
    phrase: str
    """Present progressive, such as "watching a show"."""


Interpretation = Mapping[str, Event]
"""The event of each atom."""

_STATED = {"□": "certain that", "◇": "possible that"}
_DENIED = {"□": "uncertain whether", "◇": "impossible that"}


def sentence(formula: Formula, interpretation: Interpretation) -> str:
    """The formula as a sentence with a capital and a full stop."""
    words = clause(formula, interpretation)
    return f"{words[0].upper()}{words[1:]}."


def clause(formula: Formula, interpretation: Interpretation) -> str:
    """The formula as a clause, such as "it's uncertain whether Jane is watching a show".

    Covers the formulas of `forms`: literals, each possibly under a modality, joined by or and if;
    and conditionals under a modality. A negation alone is contracted ("isn't"), within a modality
    it is written out ("is not"), as in Appendix C.2.
    """
    match formula:
        case Binary("∨", left, right):
            return f"{clause(left, interpretation)} or {clause(right, interpretation)}"
        case Binary("→", left, right):
            return f"if {clause(left, interpretation)}, then {clause(right, interpretation)}"
        case Modal(operator, inner):
            return f"it's {_STATED[operator]} {_within(inner, interpretation)}"
        case Not(Modal(operator, inner)):
            return f"it's {_DENIED[operator]} {_within(inner, interpretation)}"
        case _:
            return _literal(formula, interpretation, negation="isn't")


def _within(formula: Formula, interpretation: Interpretation) -> str:
    """A clause within the scope of a modality."""
    match formula:
        case Binary("→", left, right):
            return f"if {_within(left, interpretation)}, then {_within(right, interpretation)}"
        case _:
            return _literal(formula, interpretation, negation="is not")


def _literal(formula: Formula, interpretation: Interpretation, *, negation: str) -> str:
    match formula:
        case Atom(name):
            event = interpretation[name]
            return f"{event.name} is {event.phrase}"
        case Not(Atom(name)):
            event = interpretation[name]
            return f"{event.name} {negation} {event.phrase}"
        case _:
            raise ValueError(f"no English wording for {formula}")
