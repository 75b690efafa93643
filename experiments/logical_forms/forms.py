"""The logical forms: 24 main, 48 crossed, 3 introductions, and 7 on distributing modalities."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

from interp_experiments.logical_forms.logic import Argument, Consequence, Formula, entails, negated

Reading = Literal["form", "strict"]
"""Meaning of "uncertain": not certain (¬□A, as in the paper's forms) or, read strictly, neither
certain nor certainly false (¬□A ∧ ¬□¬A)."""

MODALITIES = ("none", "box", "diamond")
"""No modality, necessity (□, "certain") and possibility (◇, "possible")."""

SIDES = ("theorem", "fallacy")
"""A theorem, and the fallacy that swaps its second premise with its conclusion, both negated."""

ARGUMENT_FORMS = {"or": "∨", "mp": "→L", "mt": "→R", "or_fallacy": "∨!", "ac": "→L!", "da": "→R!"}
"""The symbols of the six argument forms in the analysis: disjunctive syllogism, modus ponens, modus
tollens, affirming a disjunct, affirming the consequent, denying the antecedent."""

_GROUPS = {
    "vL": ("or", "or_fallacy"),
    "vR": ("or", "or_fallacy"),
    "toL": ("mp", "ac"),
    "toR": ("mt", "da"),
}
"""The groups of a theorem and its fallacy, by schema: disjunctive syllogism with the left or the
right side denied, modus ponens, and modus tollens."""

P, Q = Formula("p"), Formula("q")


@dataclass(frozen=True, slots=True)
class Form:
    """An argument and its place in the design."""

    modality: str
    """One of `MODALITIES`."""
    schema: str
    """Name of the argument within its set, such as "vL" or "spurious"."""
    side: str
    """Its side of the pair, such as theorem or fallacy."""
    group: str
    """Level of the factor "argument form"."""
    argument: Argument
    consequence: Consequence = "local"

    @property
    def id(self) -> str:
        """The id, unique within its set, such as "box-vL-fallacy"."""
        return f"{self.modality}-{self.schema}-{self.side}"

    def valid(self, reading: Reading = "form") -> bool:
        """Whether the conclusion follows, checked in all Kripke structures."""
        premises, conclusion = self.argument.premises, self.argument.conclusion
        if reading == "strict":
            premises, conclusion = tuple(map(_strictly, premises)), _strictly(conclusion)
        return entails(Argument(premises, conclusion), consequence=self.consequence)

    def sequent(self, reading: Reading = "form") -> str:
        """The argument in symbols, with ⊢ if it is valid and ⊬ if it is not."""
        premises = ", ".join(map(str, self.argument.premises))
        return f"{premises} {'⊢' if self.valid(reading) else '⊬'} {self.argument.conclusion}"


def main_forms(*, crossed: bool = False) -> tuple[Form, ...]:
    """The 24 forms in the order of Table A1 (Section 3.3); if `crossed`, about denied events."""
    forms = []
    for place, side in enumerate(SIDES):
        for modality, (schema, groups) in product(MODALITIES, _GROUPS.items()):
            p, q = modal(modality, P), modal(modality, Q)
            plain, denied = (p, q), (negated(p), negated(q))
            (left, right), (not_left, not_right) = (denied, plain) if crossed else (plain, denied)
            first = Formula("∨", (left, right))
            if not schema.startswith("v"):
                first = Formula("→", (not_left, right))
            denial, other = (not_left, right) if schema.endswith("L") else (not_right, left)
            second, conclusion = (denial, other) if side == "theorem" else (other, denial)
            argument = Argument((first, second), conclusion)
            name = f"{schema}_crossed" if crossed else schema
            forms.append(Form(modality, name, side, groups[place], argument))
    return tuple(forms)


def crossed_forms() -> tuple[Form, ...]:
    """The main forms, and each again about denied events, with "crossed" in its schema.

    Theorems then conclude a denial, and fallacies a plain statement: over both, the wording of a
    conclusion does not tell whether it follows.
    """
    return main_forms() + main_forms(crossed=True)


def introduction_forms() -> tuple[Form, ...]:
    """p, therefore p, □p or ◇p: rules of inference, with one premise (Appendix C.1)."""
    names = ("introduction",) * 3  # schema, side and group
    return tuple(
        Form(modality, *names, Argument((P,), modal(modality, P)), consequence="global")
        for modality in MODALITIES
    )


def distribution_forms() -> tuple[Form, ...]:
    """The seven forms of Appendix C.2, Table A3; A∨B stands for the conditional ¬A→B.

    base: M(p)∨M(q), ¬M(p) ⊢ M(q), the modus ponens of the main set. theorem: M(p∨q), M(¬p) ⊢ M(q).
    spurious: M(p∨q), ¬M(p) ⊢ M(q). The names fit necessity; under possibility the theorem fails and
    the spurious form holds, since possibility distributes over disjunction.
    """
    names = ("base", "theorem", "spurious")
    scoped = [_distribution(modality, name) for modality in MODALITIES[1:] for name in names]
    return (_distribution("none", "base"), *scoped)


def modal(modality: str, formula: Formula) -> Formula:
    """The formula under a modality, or the formula itself if the modality is "none"."""
    if modality == "none":
        return formula
    return Formula("□" if modality == "box" else "◇", (formula,))


def _distribution(modality: str, name: str) -> Form:
    left, right = modal(modality, P), modal(modality, Q)
    inside = modal(modality, Formula("→", (negated(P), Q)))
    premises: tuple[Formula, Formula] = {
        "base": (Formula("→", (negated(left), right)), negated(left)),
        "theorem": (inside, modal(modality, negated(P))),
        "spurious": (inside, negated(left)),
    }[name]
    return Form(modality, name, "distribution", name, Argument(premises, right))


def _strictly(formula: Formula) -> Formula:
    """The formula with every "uncertain" read strictly: ¬□A becomes ¬□A ∧ ¬□¬A."""
    match formula:
        case Formula("¬", (Formula("□", (inner,)),)):
            return Formula("∧", (formula, negated(Formula("□", (negated(inner),)))))
        case Formula(sign, (left, right)):
            return Formula(sign, (_strictly(left), _strictly(right)))
        case _:
            return formula
