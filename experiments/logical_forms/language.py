"""Formulas in English (paper, Appendix B and Table A1), and the events that p and q denote."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from interp_experiments.chance import some
from interp_experiments.logical_forms.logic import Formula
from interp_experiments.packaged import packaged_rows


@dataclass(frozen=True, slots=True)
class Event:
    """The event that an atom denotes: somebody is doing something."""

    name: str
    phrase: str
    """The present progressive, such as "watching a show"."""


Interpretation = Mapping[str, Event]
"""The event that each atom denotes."""

_STATED = {"□": "certain that", "◇": "possible that"}
_DENIED = {"□": "uncertain whether", "◇": "impossible that"}


def sentence(formula: Formula, interpretation: Interpretation) -> str:
    """The formula as a sentence with an initial capital and a full stop."""
    words = clause(formula, interpretation)
    return f"{words[0].upper()}{words[1:]}."


def clause(
    formula: Formula, interpretation: Interpretation, *, within_modality: bool = False
) -> str:
    """The formula as a clause, such as "it's uncertain whether Jane is watching a show".

    Covers the formulas in `forms`. A bare negation is contracted ("isn't"); within a modality it is
    written out ("is not"), as in Appendix C.2.

    Raises:
        ValueError: the formula has a different shape, such as a modality within a modality.
    """
    within = partial(clause, interpretation=interpretation, within_modality=True)
    same = within if within_modality else partial(clause, interpretation=interpretation)
    match formula:
        case Formula(name, ()):
            return f"{interpretation[name].name} is {interpretation[name].phrase}"
        case Formula("¬", (Formula(name, ()),)):
            negation = "is not" if within_modality else "isn't"
            return f"{interpretation[name].name} {negation} {interpretation[name].phrase}"
        case Formula("→", (left, right)):
            return f"if {same(left)}, then {same(right)}"
        case Formula("∨", (left, right)) if not within_modality:
            return f"{same(left)} or {same(right)}"
        case Formula("□" | "◇" as operator, (inner,)) if not within_modality:
            return f"it's {_STATED[operator]} {within(inner)}"
        case Formula("¬", (Formula("□" | "◇" as operator, (inner,)),)) if not within_modality:
            return f"it's {_DENIED[operator]} {within(inner)}"
        case _:
            raise ValueError(f"no English wording for {formula}")


INTERPRETATIONS = 1000
"""Number of interpretations; each is applied to every form."""

Vocabulary = Literal["phrase", "nonsense"]
"""Columns in the data file: real verb phrases, and pseudo-words in the same grammatical frames."""


@cache
def names() -> tuple[str, ...]:
    """First names."""
    return tuple(row["name"] for row in packaged_rows(__package__, "names.csv"))


@cache
def verb_phrases(vocabulary: Vocabulary = "phrase") -> tuple[str, ...]:
    """Verb phrases in the present progressive, or their pseudo-words, in the same order."""
    return tuple(row[vocabulary] for row in packaged_rows(__package__, "verb_phrases.csv"))


def interpretations(seed: int, vocabulary: Vocabulary = "phrase") -> list[Interpretation]:
    """The interpretations of a seed: p and q with different names and different verb phrases.

    Either vocabulary gives the same names, and phrases from the same rows of the data file.
    """
    rng, phrases = random.Random(f"interpretations {seed}"), verb_phrases(vocabulary)
    drawn = ((some(rng, names(), 2), some(rng, phrases, 2)) for _ in range(INTERPRETATIONS))
    return [dict(zip("pq", map(Event, *both), strict=True)) for both in drawn]
