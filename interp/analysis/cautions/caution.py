"""Cautions: their kinds by severity, and what they say of models."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from interp.errors import one_line, visible

OUTSIDE_OPTIONS, CONSTANT, SYSTEM_PROMPT, ROUNDING = (
    "replies outside the options",
    "nearly constant answers",
    "a system prompt of the template",
    "rounding",
)
WEIGHTS, LEFT_OUT, UNTESTED = "unequal weights", "left out", "not tested"
PATHS, GAP = "paths that a method leaves out", "scores that do not add up"
SHARED = "shared prompts"
EMBEDDED, COPIED = "read from the embedding alone", "read where it may be copied"
FEW_FAILURES, LEADING = "too few failures", "one token leads"
WHOLE = "answers read whole"
NOTHING = "nothing that was shown to differ from zero"
SPREAD = "within the donors' spread"
REACH = "tests that nothing can make significant"
PART_ALONE = "told apart without the premises"
TEXTS, FOREIGN = "texts that do not fit", "thoughts of another model"

KINDS = (
    *(FOREIGN, PART_ALONE, TEXTS, OUTSIDE_OPTIONS, CONSTANT, FEW_FAILURES, LEFT_OUT, SPREAD),
    *(EMBEDDED, COPIED, LEADING, REACH, NOTHING, PATHS, GAP, SYSTEM_PROMPT, ROUNDING),
    *(SHARED, WEIGHTS, WHOLE, UNTESTED),
)
"""Kinds of cautions, the most severe first."""

SHOWN_CHARACTERS = 40
"""Largest number of characters of an option or a token in a caution."""


@dataclass(frozen=True, slots=True)
class Caution:
    """One objection, with its numbers."""

    kind: str
    """One of `KINDS`."""
    model: str
    """Name of the model; empty if the caution is about the prompts."""
    text: str
    """One or two sentences."""
    voids: bool = False
    """Whether the model's accuracies say nothing about what it reads."""
    numbers: Mapping[str, object] = field(default_factory=dict)
    """The numbers in the text, unrounded."""

    @property
    def said(self) -> str:
        """The caution on one line, after the model's name."""
        return f"{one_line(self.model)}: {self.text}" if self.model else self.text


def ordered(cautions: Iterable[Caution]) -> tuple[Caution, ...]:
    """The cautions by severity; those of one kind in the given order.

    That thoughts are not the model's own comes first, since it concerns all that is read after
    them, and then that premises may not be read, which no other number shows.
    """

    def severity(caution: Caution) -> tuple[bool, bool, int]:
        first = caution.kind in (FOREIGN, PART_ALONE)
        return not first, not (first or caution.voids), KINDS.index(caution.kind)

    return tuple(sorted(cautions, key=severity))


def void_models(cautions: Iterable[Caution]) -> dict[str, str]:
    """The models whose accuracies say nothing about what they read, each with the reason."""
    reasons = {
        OUTSIDE_OPTIONS: "most of its replies are outside the options",
        CONSTANT: "its answers hardly depend on the prompt",
        LEFT_OUT: "left out, for the reason above",
    }
    return {
        caution.model: reasons[caution.kind]
        for caution in reversed(ordered(cautions))
        if caution.voids
    }


def said_outside(cautions: Iterable[Caution]) -> list[str]:
    """The models of which a caution gives the share of replies outside the options."""
    return [caution.model for caution in cautions if caution.kind == OUTSIDE_OPTIONS]


def as_json(cautions: Iterable[Caution], model: str) -> list[dict[str, object]]:
    """The cautions about a model and its prompts, for a record."""
    return [asdict(caution) for caution in cautions if caution.model in (model, "")]


def quoted(text: str) -> str:
    """A name from the data or the model within a sentence; in quotation marks if not one word."""
    shown = one_line(text, SHOWN_CHARACTERS)
    return shown if re.fullmatch(r"[\w-]+", shown) else f"“{shown}”"


def reply_text(token: str) -> str:
    """The beginning of a reply on one line, with white space that can be seen."""
    return one_line(visible(token), SHOWN_CHARACTERS)


def percent(share: float) -> str:
    """A share in percent; it is 100% or 0% only if it is exactly 1 or 0."""
    rounded = round(100 * share)
    if share < 1 <= rounded / 100:
        return f"{math.floor(1000 * share) / 10:.1f}%"
    return f"{rounded}%" if rounded or not share else f"{100 * share:.1f}%"
