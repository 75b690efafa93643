"""LogicalForms as systems that every command can use."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from interp.errors import UserError
from interp.prompts.prompt_set import PromptSet
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
class LogicalForms:
    """A set of forms under 1,000 interpretations (paper, Sections 3 and 4.2.2, Appendix C)."""

    unit = "interpretation"
    """Questions under one interpretation are about the same events, and have the same donors."""

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
        return self._questions(seed).prompt_set(
            system=self.name, seed=seed, description=description
        )

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """One row per question: id, pair, side, text, gold answer, factors, text by segment."""
        questions = self._questions(seed)
        return pd.DataFrame(
            [
                {
                    "id": prompt.id,
                    "pair_id": prompt.pair_id,
                    "side": prompt.side,
                    "text": prompt.text,
                    "gold": prompt.answer.gold,
                    **prompt.factors,
                    **{name: prompt.segment_text(name) for name in prompt.segments},
                }
                for prompt in map(questions.prompt, range(len(questions)))
            ]
        )

    def _questions(self, seed: int) -> Questions:
        return Questions(self.forms(), interpretations(seed, self.vocabulary), self.reading)


system = LogicalForms("logical-forms")
strict = LogicalForms("logical-forms-strict", reading="strict")
nonsense = LogicalForms("logical-forms-nonsense", vocabulary="nonsense")
introduction = LogicalForms("logical-forms-introduction", introduction_forms)
distribution = LogicalForms("logical-forms-distribution", distribution_forms)
