"""Where the sentences of a question name their event."""

from collections.abc import Mapping

from interp.prompts.prompt import Span
from interp_experiments.logical_forms.forms import Form
from interp_experiments.logical_forms.kripke import atoms_of
from interp_experiments.logical_forms.language import Interpretation


def event_roles(
    form: Form, interpretation: Interpretation, sentences: Mapping[str, str]
) -> dict[str, dict[str, Span]]:
    """Where premise 2 and the conclusion name their one event: who, and does what, by role.

    The two sides of a pair have different events there, which patching exchanges.

    Args:
        form: the form of the question.
        interpretation: its events.
        sentences: segment to its text.
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
