"""Forms under interpretations as prompts: the question of Appendix B.2 with its segments."""

from collections.abc import Sequence
from dataclasses import dataclass

from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt, compose, placed
from interp.prompts.prompt_set import PromptSet
from interp_experiments.logical_forms.donors import EventDonors
from interp_experiments.logical_forms.forms import Form, Reading
from interp_experiments.logical_forms.language import Interpretation, clause, sentence
from interp_experiments.logical_forms.roles import event_roles

YES = AnswerOption("Yes", ("Yes",))
NO = AnswerOption("No", ("No",))

STRATA = ("modality", "schema")

RATIO = ("premise2", "premise1")
"""Segments whose scores are compared."""


@dataclass(frozen=True)
class Questions:
    """Every form under every interpretation, as yes-no questions."""

    forms: Sequence[Form]
    interpretations: Sequence[Interpretation]
    reading: Reading = "form"

    def __len__(self) -> int:
        return len(self.forms) * len(self.interpretations)

    def prompt(self, number: int) -> Prompt:
        """A question: number n F + f is interpretation n under form f of F."""
        index, form = divmod(number, len(self.forms))
        return to_prompt(
            self.forms[form],
            self.interpretations[index],
            prefix=f"LOGIC_{index + 1:04d}",
            reading=self.reading,
        )

    def prompt_set(self, *, system: str, seed: int, description: dict[str, str]) -> PromptSet:
        """All questions; a pair is a theorem and its fallacy under one interpretation."""
        return PromptSet(
            system=system,
            sides=tuple(dict.fromkeys(form.side for form in self.forms)),
            strata=STRATA,
            build=self.prompt,
            numbers=range(len(self)),
            seed=seed,
            description=description,
            ratio=RATIO if all(len(form.argument.premises) == 2 for form in self.forms) else None,
            unit=("interpretation",),
            donors=EventDonors(self.forms, self.interpretations, seed),
        )


def to_prompt(
    form: Form, interpretation: Interpretation, *, prefix: str, reading: Reading = "form"
) -> Prompt:
    """One question.

    Its segments are premise1, premise2 (where there are two), question and conclusion, its roles
    those of `event_roles`. The gold answer is Yes if and only if the form is valid.
    """
    premises = [sentence(premise, interpretation) for premise in form.argument.premises]
    text, segments = compose(
        [
            (None, "Consider the following statements:\n"),
            *(
                part
                for number, premise in enumerate(premises, start=1)
                for part in ((f"premise{number}", premise), (None, "\n"))
            ),
            ("question", "Question: Based on these statements, can we infer that"),
            (None, " "),
            ("conclusion", clause(form.argument.conclusion, interpretation)),
            (None, "?\nAnswer:"),
        ]
    )
    return Prompt(
        id=f"{prefix}/{form.id}",
        text=text,
        segments=segments,
        answer=Choice.between(YES, NO, gold=form.valid(reading)),
        pair_id=f"{prefix}/{form.modality}-{form.schema}",
        side=form.side,
        factors={
            "modality": form.modality,
            "argument_form": form.group,
            "schema": form.schema,
            "formula": form.sequent(reading),
            "interpretation": prefix,
            **{
                f"{part}_{atom}": getattr(event, part)
                for atom, event in interpretation.items()
                for part in ("name", "phrase")
            },
        },
        roles=placed(
            segments,
            event_roles(
                form, interpretation, {name: text[slice(*span)] for name, span in segments.items()}
            ),
        ),
    )
