"""One prompt: its text, the parts of it that are measured, and the answers it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interp.errors import UserError, shortened
from interp.prompts.answers import Answer
from interp.prompts.donors import Donor
from interp.prompts.messages import ALONE, Messages

Span = tuple[int, int]
"""A half-open range of characters, (start, end)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to a model, with everything needed to mark its answer and to explain it."""

    id: str
    """Unique within a prompt set."""
    text: str
    """The user message, before any chat template."""
    segments: Mapping[str, Span]
    """Named spans of characters in `text`, such as premise1, premise2, conclusion, question."""
    answer: Answer
    """What is asked for, and what is correct."""
    pair_id: str
    """Shared by the two sides of a minimal pair, or by all members of a group of variants."""
    side: str
    """Which member of its group this prompt is, such as "rulebreaker"."""
    factors: Mapping[str, str]
    """What was varied, such as rule, verb, phrasing: one column each in the tables."""
    roles: Mapping[str, Span] = field(default_factory=dict)
    """Finer spans within the segments, such as premise1_entity_a, which patching tells apart."""
    messages: Messages = ALONE
    """What the model reads around the text."""
    donors: tuple[Donor, ...] = ()
    """Other texts for some of its segments."""

    def __post_init__(self) -> None:
        """Refuse what would be measured wrongly without a word.

        Raises:
            UserError: an id, side or text that is no text, an answer of no such class, or a span
                outside the text.
        """
        # All 256,000 prompts of a set pass here, so what is right is found right at once.
        if not isinstance(self.answer, Answer):
            raise self._wrong(
                "answer", self.answer, "a Choice, a Label, a FreeText or a Completion"
            )
        for name, text in (
            ("id", self.id),
            ("text", self.text),
            ("pair_id", self.pair_id),
            ("side", self.side),
        ):
            if not isinstance(text, str) or not text:
                raise self._wrong(name, text, "a text that is not empty")
        for name, spans in (("segments", self.segments), ("roles", self.roles)):
            if not _are_within(spans, len(self.text)):
                raise self._wrong(
                    name, spans, f"spans (start, end) of the text's {len(self.text)} characters"
                )

    def _wrong(self, name: str, got: object, expected: str) -> UserError:
        return UserError(
            f"prompt {shortened(str(self.id), 60)!r}: {name} is {shortened(repr(got))}, a "
            f"{type(got).__name__}; expected {expected}"
        )

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


def _are_within(spans: Mapping[str, Span], length: int) -> bool:
    try:
        for start, end in spans.values():
            if not 0 <= start <= end <= length:
                return False
    except (AttributeError, TypeError, ValueError):  # no mapping, or no pairs of numbers
        return False
    return True


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


def placed(
    segments: Mapping[str, Span], within: Mapping[str, Mapping[str, Span]]
) -> dict[str, Span]:
    """Spans of the whole text by name, from spans within segments: segment to name to span."""
    return {
        name: (segments[segment][0] + start, segments[segment][0] + end)
        for segment, spans in within.items()
        for name, (start, end) in spans.items()
    }
