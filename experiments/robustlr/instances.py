"""An instance: a theory, a statement and its label, as one of a group of related instances."""

from dataclasses import dataclass

from interp_experiments.robustlr.english import sentence
from interp_experiments.robustlr.language import Literal, Theory, Verdict


@dataclass(frozen=True, slots=True)
class Instance:
    """A question to a model: does the theory entail the statement, its negation, or neither?"""

    theory_id: str
    """Shared by a base theory and its variants."""
    set: str
    """Which data it belongs to, such as "C-CS"."""
    version: str
    """Which member of its group it is, such as "conj1"."""
    group: str
    """What distinguishes it from the base, such as "conj+neg"."""
    base_label: Verdict
    """The label of the group's base."""
    theory: Theory
    statement: Literal
    label: Verdict

    @classmethod
    def alone(
        cls, theory_id: str, set_: str, version: str, theory: Theory, question: "Question"
    ) -> "Instance":
        """A question that is no variant of another: its own base."""
        statement, label = question
        return cls(theory_id, set_, version, label.value, label, theory, statement, label)

    @property
    def id(self) -> str:
        """Its name among all instances."""
        return f"{self.theory_id}/{self.version}"

    @property
    def context(self) -> str:
        """The theory in English: facts, then rules."""
        return " ".join(map(sentence, self.theory.sentences))


Question = tuple[Literal, Verdict]
"""A statement and its label."""
