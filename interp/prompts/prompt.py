"""One prompt: its text, the parts of it that are measured, and the answers it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interp.errors import UserError, shortened
from interp.prompts.messages import ALONE, Messages

Span = tuple[int, int]
"""A half-open range of characters, (start, end)."""


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """One answer and the ways to write it, such as "Yes", "YES" and "yes"."""

    name: str
    """What the option is called in tables, such as "Yes"."""
    forms: tuple[str, ...]
    """Surface forms; each counts by the first token that it is written with."""

    def __post_init__(self) -> None:
        """Refuse what would be counted wrongly: a string would be taken for its letters.

        Raises:
            UserError: a name or a form that is no text, or forms that are no tuple.
        """
        # Lists are refused too: an option is a key, and its forms are hashed.
        if not isinstance(self.forms, tuple):
            raise UserError(
                f"the forms of the option {self.name!r} are {shortened(repr(self.forms))}; "
                'expected a tuple of texts, such as ("Yes", "yes")'
            )
        for text in (self.name, *self.forms):
            if not isinstance(text, str) or not text:
                raise UserError(
                    f"the option {self.name!r} has the name or form {shortened(repr(text))}; "
                    "expected a text that is not empty"
                )


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
    messages: Messages = ALONE
    """What the model reads around the text."""

    def __post_init__(self) -> None:
        """Refuse what would be measured wrongly without a word.

        Raises:
            UserError: an id, side or text that is no text, a gold answer that is no bool, an option
                that is none, a positive option without forms, or a span outside the text.
        """
        # All 256,000 prompts of a set pass here, so what is right is found right at once.
        if self.gold is not True and self.gold is not False:
            raise self._wrong(
                "gold", self.gold, "True where the positive option is correct, or False"
            )
        for name, text in (
            ("id", self.id),
            ("text", self.text),
            ("pair_id", self.pair_id),
            ("side", self.side),
        ):
            if not isinstance(text, str) or not text:
                raise self._wrong(name, text, "a text that is not empty")
        for name, option in (("positive", self.positive), ("negative", self.negative)):
            if not isinstance(option, AnswerOption):
                raise self._wrong(name, option, 'an option, such as AnswerOption("Yes", ("Yes",))')
        if not self.positive.forms:
            raise self._wrong("positive", self.positive, "an option with at least one form")
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
