"""Forms under interpretations as prompts: the question of Appendix B.2, its roles and donors."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Donor, Prompt, Span, compose, placed
from interp.prompts.prompt_set import PromptSet
from interp_experiments.chance import below
from interp_experiments.logical_forms.forms import Form, Reading
from interp_experiments.logical_forms.language import Interpretation, clause, sentence
from interp_experiments.logical_forms.logic import atoms_of

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

    Its segments are premise1, premise2 (if there are two), question and conclusion, its roles
    those of `event_roles`. The gold answer is Yes if and only if the form is valid.
    """
    given = texts(form, interpretation)
    premises = [(name, words) for name, words in given.items() if name != "conclusion"]
    text, segments = compose(
        [
            (None, "Consider the following statements:\n"),
            *(part for premise in premises for part in (premise, (None, "\n"))),
            ("question", "Question: Based on these statements, can we infer that"),
            (None, " "),
            ("conclusion", given["conclusion"]),
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
        roles=placed(segments, event_roles(form, interpretation, given)),
    )


def texts(form: Form, interpretation: Interpretation) -> dict[str, str]:
    """The premises and the conclusion of a form as its prompt writes them, by segment."""
    premises = enumerate(form.argument.premises, start=1)
    return {
        **{f"premise{number}": sentence(premise, interpretation) for number, premise in premises},
        "conclusion": clause(form.argument.conclusion, interpretation),
    }


def event_roles(
    form: Form, interpretation: Interpretation, sentences: Mapping[str, str]
) -> dict[str, dict[str, Span]]:
    """The name and the phrase of the event in premise 2 and in the conclusion, as spans by role.

    The two sides of a pair have different events there, which patching exchanges.

    Args:
        form: the form of the question.
        interpretation: its events.
        sentences: the text of each segment.
    """
    formulas = {"conclusion": form.argument.conclusion}
    if "premise2" in sentences:
        formulas["premise2"] = form.argument.premises[1]
    found: dict[str, dict[str, Span]] = {}
    for segment, formula in formulas.items():
        (atom,) = atoms_of(formula)
        event, text = interpretation[atom], sentences[segment]
        phrase = text.rindex(event.phrase)
        name = text.rindex(f"{event.name} is", 0, phrase)
        found[segment] = {
            f"{segment}_name": (name, name + len(event.name)),
            f"{segment}_phrase": (phrase, phrase + len(event.phrase)),
        }
    return found


class EventDonors:
    """Other interpretations of a prompt's form, without any event of the prompt.

    Their order is drawn for each interpretation, so that a theorem and its fallacy have donors
    about the same events.
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
