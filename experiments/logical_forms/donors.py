"""Donors for premises and conclusion: the same form about other events."""

import random
from collections.abc import Iterator, Sequence

from interp.prompts.prompt import Donor
from interp_experiments.chance import below
from interp_experiments.logical_forms.forms import Form
from interp_experiments.logical_forms.language import Interpretation, clause, sentence
from interp_experiments.logical_forms.roles import event_roles


class EventDonors:
    """Other interpretations of a prompt's form, none of whose events is one of its own.

    In an order drawn by the interpretation, so that a theorem and its fallacy have donors of the
    same events.
    """

    def __init__(
        self, forms: Sequence[Form], interpretations: Sequence[Interpretation], seed: int
    ) -> None:
        self._forms = forms
        self._interpretations = interpretations
        self._seed = seed

    def __call__(self, number: int) -> Iterator[Donor]:
        """The donors of prompt n F + f, interpretation n under form f of F."""
        own, form = divmod(number, len(self._forms))
        events = set(self._interpretations[own].values())
        rng = random.Random(f"donors {self._seed} {own}")
        drawn: set[int] = {own}
        while len(drawn) < len(self._interpretations):
            other = below(rng, len(self._interpretations))
            interpretation = self._interpretations[other]
            if other not in drawn and events.isdisjoint(interpretation.values()):
                given = texts(self._forms[form], interpretation)
                roles = event_roles(self._forms[form], interpretation, given)
                yield Donor(f"LOGIC_{other + 1:04d}", "instance", given, roles)
            drawn.add(other)


def texts(form: Form, interpretation: Interpretation) -> dict[str, str]:
    """The premises and the conclusion of a form as its prompt writes them, by segment."""
    premises = enumerate(form.argument.premises, start=1)
    return {
        **{f"premise{number}": sentence(premise, interpretation) for number, premise in premises},
        "conclusion": clause(form.argument.conclusion, interpretation),
    }
