"""LogicalForms as systems that every command can use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interp.errors import UserError
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import System
from interp_experiments.logical_forms.forms import (
    Form,
    Reading,
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.language import Vocabulary, interpretations
from interp_experiments.logical_forms.prompts import Questions


@dataclass(frozen=True)
class LogicalForms(System):
    """A set of forms under 1,000 interpretations (paper, Sections 3 and 4.2.2, Appendix C)."""

    unit = "interpretation"
    """Questions under one interpretation are about the same events and share their donors."""

    name: str
    forms: Callable[[], tuple[Form, ...]] = main_forms
    vocabulary: Vocabulary = "phrase"
    reading: Reading = "form"

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All questions, generated from `seed`.

        Raises:
            UserError: `data` is given: the paper's data are not published.
        """
        if data is not None:
            raise UserError(
                f"{self.name} reads no data (got {data!r}): none are published, the questions are "
                "generated; leave --data out, and vary --seed for other interpretations"
            )
        description = {
            "data": "generated",
            "vocabulary": self.vocabulary,
            "reading": self.reading,
        }
        questions = Questions(self.forms(), interpretations(seed, self.vocabulary), self.reading)
        return questions.prompt_set(system=self.name, seed=seed, description=description)

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The figures planted by modality, and the measured accuracy, answers and perplexity."""
        recipe, measured = card["recipe"], card["measured"]
        planted = {
            f"{name}_{modality}": f"{value:+.1f}"
            for name in ("competence", "bias")
            for modality, value in recipe[name].items()
        }
        accuracy, yes = (measured[f"{name}_by_modality"] for name in ("soft_accuracy", "yes"))
        return {
            **planted,
            **{f"soft_accuracy_{modality}": value for modality, value in accuracy.items()},
            **{f"share_of_Yes_{modality}": value for modality, value in yes.items()},
            "perplexity": measured["perplexity"],
            "perplexity_of_nonsense": measured["nonsense_perplexity"],
        }


system = LogicalForms("logical-forms")
strict = LogicalForms("logical-forms-strict", reading="strict")
nonsense = LogicalForms("logical-forms-nonsense", vocabulary="nonsense")
introduction = LogicalForms("logical-forms-introduction", introduction_forms)
distribution = LogicalForms("logical-forms-distribution", distribution_forms)
