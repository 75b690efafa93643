"""One prompt: its text, the parts of it that are measured, and the answers it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interp.errors import UserError

Span = tuple[int, int]
"""A half-open range of characters, (start, end)."""


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """One answer and the ways to write it, such as "Yes", "YES" and "yes"."""

    name: str
    """What the option is called in tables, such as "Yes"."""
    forms: tuple[str, ...]
    """Surface forms; each counts by the first token that it is written with."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to a model, with everything needed to mark its answer and to explain it."""

    id: str
    """Unique within a prompt set."""
    text: str
    """The user message, before any chat template."""
    segments: Mapping[str, Span]
    """Named spans of characters in `text`, such as premise1, premise2, conclusion, question."""
    positive: AnswerOption
    """The answer that accepts the conclusion."""
    negative: AnswerOption
    """The answer that rejects the conclusion."""
    gold: bool
    """Whether the positive option is the correct one."""
    pair_id: str
    """Shared by the two sides of a minimal pair."""
    side: str
    """Which side of its pair this prompt is, such as "rulebreaker"."""
    factors: Mapping[str, str]
    """What was varied, such as rule, verb, phrasing: one column each in the tables."""
    roles: Mapping[str, Span] = field(default_factory=dict)
    """Finer spans within the segments, such as premise1_entity_a, which patching tells apart."""

    @property
    def gold_option(self) -> AnswerOption:
        """The correct option."""
        return self.positive if self.gold else self.negative

    def segment_text(self, name: str) -> str:
        """The characters of a segment.

        Raises:
            UserError: the prompt has no segment of that name.
        """
        if name not in self.segments:
            known = ", ".join(self.segments)
            raise UserError(f"prompt {self.id} has no segment {name!r}; it has {known}")
        start, end = self.segments[name]
        return self.text[start:end]


def compose(parts: list[tuple[str | None, str]]) -> tuple[str, dict[str, Span]]:
    """Join parts of text and return the text with the span of each named part.

    A part is (segment name, text); None names a part that belongs to no segment.
    """
    text = ""
    spans: dict[str, Span] = {}
    for name, part in parts:
        if name is not None:
            spans[name] = (len(text), len(text) + len(part))
        text += part
    return text, spans
