"""The logical forms: 24 of the main set, 3 introduction rules, 7 on the distribution of modalities.

Validity is not hard-coded: `Form.valid` asks the Kripke structures.
"""

from dataclasses import dataclass
from typing import Literal

from interp_experiments.logical_forms.logic import (
    Argument,
    Atom,
    Binary,
    Consequence,
    Formula,
    Modal,
    Not,
    entails,
)

Reading = Literal["form", "strict"]
"""Meaning of "uncertain": not certain (¬□A, as the paper's forms have it), or strictly, neither
certain nor certainly not (¬□A ∧ ¬□¬A)."""

MODALITIES = ("none", "box", "diamond")
"""No modality, necessity (□, "certain") and possibility (◇, "possible")."""

SIDES = ("theorem", "fallacy")
"""A theorem, and the fallacy that swaps its second premise with its conclusion, both negated."""

SCHEMAS = ("vL", "vR", "toL", "toR")
"""Disjunctive syllogism with the left or right side denied, modus ponens, modus tollens."""

ARGUMENT_FORMS = {
    "or": "∨",
    "mp": "→L",
    "mt": "→R",
    "or_fallacy": "∨!",
    "ac": "→L!",
    "da": "→R!",
}
"""The symbols of the six groups of the analysis: disjunctive syllogism, modus ponens, modus
tollens, affirming a disjunct, affirming the consequent, denying the antecedent."""

_GROUPS = {
    ("theorem", "vL"): "or",
    ("theorem", "vR"): "or",
    ("theorem", "toL"): "mp",
    ("theorem", "toR"): "mt",
    ("fallacy", "vL"): "or_fallacy",
    ("fallacy", "vR"): "or_fallacy",
    ("fallacy", "toL"): "ac",
    ("fallacy", "toR"): "da",
}

P, Q = Atom("p"), Atom("q")


@dataclass(frozen=True, slots=True)
class Form:
    """An argument with its place in the design."""

    modality: str
    """One of `MODALITIES`."""
    schema: str
    """Name of the argument within its set, such as "vL" or "spurious"."""
    side: str
    """Side of its pair."""
    group: str
    """Level of the factor argument form."""
    argument: Argument
    consequence: Consequence = "local"

    @property
    def id(self) -> str:
        """The id, unique within its set, such as "box-vL-fallacy"."""
        return f"{self.modality}-{self.schema}-{self.side}"

    def valid(self, reading: Reading = "form") -> bool:
        """Whether the conclusion follows from the premises."""
        argument = self.argument if reading == "form" else strictly(self.argument)
        return entails(argument, consequence=self.consequence)

    def sequent(self, reading: Reading = "form") -> str:
        """The argument in symbols, with ⊢ if it is valid and ⊬ if it is not."""
        premises = ", ".join(map(str, self.argument.premises))
        return f"{premises} {'⊢' if self.valid(reading) else '⊬'} {self.argument.conclusion}"


def main_forms() -> tuple[Form, ...]:
    """The 24 forms in the order of Table A1 (paper, Section 3.3)."""
    return tuple(
        Form(
            modality=modality,
            schema=schema,
            side=side,
            group=_GROUPS[side, schema],
            argument=_syllogism(modality, schema, side),
        )
        for side in SIDES
        for modality in MODALITIES
        for schema in SCHEMAS
    )


def introduction_forms() -> tuple[Form, ...]:
    """p, therefore p, □p or ◇p: rules of inference, with one premise (Appendix C.1)."""
    return tuple(
        Form(
            modality=modality,
            schema="introduction",
            side="introduction",
            group="introduction",
            argument=Argument((P,), modal(modality, P)),
            consequence="global",
        )
        for modality in MODALITIES
    )


def distribution_forms() -> tuple[Form, ...]:
    """The seven forms of Appendix C.2, Table A3, with conditionals in place of disjunctions.

    base: M(p)∨M(q), ¬M(p) ⊢ M(q). theorem: M(p∨q), M(¬p) ⊢ M(q). spurious: M(p∨q), ¬M(p) ⊢ M(q).
    The names are those of necessity; under possibility the theorem fails and the spurious form
    holds, since possibility distributes over disjunction.
    """
    none, *modalities = MODALITIES
    forms = [_distribution(none, "base")]
    for modality in modalities:
        forms += [_distribution(modality, name) for name in ("base", "theorem", "spurious")]
    return tuple(forms)


def modal(modality: str, formula: Formula) -> Formula:
    """The formula under a modality."""
    match modality:
        case "box":
            return Modal("□", formula)
        case "diamond":
            return Modal("◇", formula)
        case _:
            return formula


def strictly(argument: Argument) -> Argument:
    """The argument with every "uncertain" read strictly: ¬□A becomes ¬□A ∧ ¬□¬A."""
    premises = tuple(map(_strictly, argument.premises))
    return Argument(premises, _strictly(argument.conclusion))


def _syllogism(modality: str, schema: str, side: str) -> Argument:
    left, right = modal(modality, P), modal(modality, Q)
    connective, denied = {
        "vL": ("or", left),
        "vR": ("or", right),
        "toL": ("if", left),
        "toR": ("if", right),
    }[schema]
    first = Binary("∨", left, right) if connective == "or" else Binary("→", Not(left), right)
    other = right if denied == left else left
    if side == "theorem":
        return Argument((first, Not(denied)), other)
    return Argument((first, other), Not(denied))


def _distribution(modality: str, name: str) -> Form:
    left, right = modal(modality, P), modal(modality, Q)
    inside = modal(modality, Binary("→", Not(P), Q))
    premises: tuple[Formula, Formula] = {
        "base": (Binary("→", Not(left), right), Not(left)),
        "theorem": (inside, modal(modality, Not(P))),
        "spurious": (inside, Not(left)),
    }[name]
    return Form(
        modality=modality,
        schema=name,
        side="distribution",
        group=name,
        argument=Argument(premises, right),
    )


def _strictly(formula: Formula) -> Formula:
    match formula:
        case Not(Modal("□", inner)):
            return Binary("∧", formula, Not(Modal("□", Not(inner))))
        case Binary(connective, left, right):
            return Binary(connective, _strictly(left), _strictly(right))
        case _:
            return formula
