"""LogicalForms as systems for every command: questions, their roles and donors."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interp import AnswerOption, Choice, Prompt, PromptSet, System, UserError
from interp.extend import Donor, Outline, Span, compose, placed
from interp_experiments.chance import below
from interp_experiments.logical_forms.forms import (
    Form,
    Reading,
    crossed_forms,
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.language import (
    Interpretation,
    Vocabulary,
    clause,
    interpretations,
    sentence,
)
from interp_experiments.logical_forms.logic import atoms_of

YES = AnswerOption("Yes", ("Yes",))
NO = AnswerOption("No", ("No",))


@dataclass(frozen=True)
class LogicalForms(System):
    """A set of forms under 1,000 interpretations (paper, Sections 3 and 4.2.2 and Appendix C)."""

    unit = "interpretation"
    """Questions under one interpretation are about the same events and share their donors."""

    name: str
    forms: Callable[[], tuple[Form, ...]] = main_forms
    vocabulary: Vocabulary = "phrase"
    reading: Reading = "form"

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All questions, generated from `seed`; a theorem and its fallacy are a pair.

        With F forms, prompt n F + f asks form f under interpretation n (Appendix B.2).

        Raises:
            UserError: `data` is not None; the paper's data are not published.
        """
        if data is not None:
            raise UserError(
                f"{self.name} reads no data (got {data!r}): none are published, and the questions "
                "are generated; omit --data, and vary --seed for other interpretations"
            )
        forms, drawn = self.forms(), interpretations(seed, self.vocabulary)
        two_premises = all(len(form.argument.premises) == 2 for form in forms)

        def placed(number: int) -> tuple[Form, int]:
            """The form of a prompt, and the place of its interpretation."""
            n, form = divmod(number, len(forms))
            return forms[form], n

        def build(number: int) -> Prompt:
            form, n = placed(number)
            return to_prompt(form, drawn[n], _name(n), self.reading)

        def outline(number: int) -> Outline:
            form, n = placed(number)
            factors = {"modality": form.modality, "schema": form.schema, "interpretation": _name(n)}
            return Outline(_pair_id(form, _name(n)), factors)

        return PromptSet(
            system=self.name,
            sides=tuple(dict.fromkeys(form.side for form in forms)),
            strata=("modality", "schema"),
            build=build,
            outline=outline,
            numbers=range(len(forms) * len(drawn)),
            seed=seed,
            description={
                "data": "generated",
                "vocabulary": self.vocabulary,
                "reading": self.reading,
            },
            ratio=("premise2", "premise1") if two_premises else None,
            unit=("interpretation",),
            donors=lambda number: donors(*placed(number), drawn, seed),
        )

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The planted figures by modality, and the measured accuracy, answers and perplexities."""
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
crossed = LogicalForms("logical-forms-crossed", crossed_forms)
introduction = LogicalForms("logical-forms-introduction", introduction_forms)
distribution = LogicalForms("logical-forms-distribution", distribution_forms)


def donors(form: Form, index: int, drawn: Sequence[Interpretation], seed: int) -> Iterator[Donor]:
    """Other interpretations of a question's form that share no event with its own.

    Their order is drawn per interpretation, so a theorem and its fallacy have donors about the same
    events.
    """
    events = set(drawn[index].values())
    rng = random.Random(f"donors {seed} {index}")
    seen: set[int] = {index}
    while len(seen) < len(drawn):
        other = below(rng, len(drawn))
        if other not in seen and events.isdisjoint(drawn[other].values()):
            texts = _texts(form, drawn[other])
            roles = _event_roles(form, drawn[other], texts)
            yield Donor(_name(other), "instance", texts, roles)
        seen.add(other)


def _name(index: int) -> str:
    """The name of an interpretation; the ids of its prompts begin with it."""
    return f"LOGIC_{index + 1:04d}"


def _pair_id(form: Form, prefix: str) -> str:
    return f"{prefix}/{form.modality}-{form.schema}"


def to_prompt(
    form: Form, interpretation: Interpretation, prefix: str, reading: Reading = "form"
) -> Prompt:
    """One question, with the prefix of its id; Yes is correct if and only if the form is valid.

    Its segments are premise1, premise2 (if there are two), question and conclusion.
    """
    texts = _texts(form, interpretation)
    premises = [(name, words) for name, words in texts.items() if name != "conclusion"]
    parts: list[tuple[str | None, str]] = [(None, "Consider the following statements:\n")]
    for premise in premises:
        parts += [premise, (None, "\n")]
    parts += [("question", "Question: Based on these statements, can we infer that"), (None, " ")]
    parts += [("conclusion", texts["conclusion"]), (None, "?\nAnswer:")]
    text, segments = compose(parts)
    return Prompt(
        id=f"{prefix}/{form.id}",
        text=text,
        segments=segments,
        answer=Choice.between(YES, NO, gold=form.valid(reading)),
        pair_id=_pair_id(form, prefix),
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
        roles=placed(segments, _event_roles(form, interpretation, texts)),
    )


def _texts(form: Form, interpretation: Interpretation) -> dict[str, str]:
    """The premises and the conclusion of a form as worded in its prompt, by segment."""
    premises = enumerate(form.argument.premises, start=1)
    return {
        **{f"premise{number}": sentence(premise, interpretation) for number, premise in premises},
        "conclusion": clause(form.argument.conclusion, interpretation),
    }


def _event_roles(
    form: Form, interpretation: Interpretation, texts: Mapping[str, str]
) -> dict[str, dict[str, Span]]:
    """Spans by role of the events' names and phrases where the sides differ, for patching."""
    formulas = {"conclusion": form.argument.conclusion}
    if "premise2" in texts:
        formulas["premise2"] = form.argument.premises[1]
    roles: dict[str, dict[str, Span]] = {}
    for segment, formula in formulas.items():
        (atom,) = atoms_of(formula)
        event, text = interpretation[atom], texts[segment]
        phrase = text.rindex(event.phrase)
        name = text.rindex(f"{event.name} is", 0, phrase)
        roles[segment] = {
            f"{segment}_name": (name, name + len(event.name)),
            f"{segment}_phrase": (phrase, phrase + len(event.phrase)),
        }
    return roles
