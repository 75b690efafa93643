"""One prompt: its text and parts, the messages around it, its donors, and the requested answer."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from interp.errors import UserError, described, shortened
from interp.prompts.answers import Answer, Completion, check_visible
from interp.prompts.thought import Span, Thought

DonorKind = Literal["instance", "counterpart"]
"""Kinds of donors: another instance of the same template, or the other side of the prompt's pair.
"""

Combination = tuple[Hashable, ...]
"""A combination of values, one for each of several factors."""

SYSTEM_PROMPT, INSTRUCTION, ANSWER_PREFIX = "system_prompt", "instruction", "answer_prefix"
"""Names of the segments that may stand around the parts of a prompt's own text."""

DONORS = 8
"""Default number of a prompt's donors from other instances."""


@dataclass(frozen=True, slots=True)
class Donor:
    """Strings that replace segments of a prompt, all from one source."""

    name: str
    """Source of the strings, such as "France/Paris"."""
    kind: DonorKind
    segments: Mapping[str, str]
    """String for each segment; all donors of a prompt have the same segments."""
    roles: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """Roles in each segment, as spans of characters of its string."""

    def record(self) -> list[object]:
        """The full content, for hashing."""
        roles = {segment: dict(spans) for segment, spans in self.roles.items()}
        return [self.name, self.kind, dict(self.segments), roles]


DonorSource = Callable[[int], Iterator[Donor]]
"""Function from a prompt's number in a `PromptSet` to its possible donors, in the order in which
they are used. This order depends only on content and seed, not on limits or workers.
"""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An answered question that the model reads before the prompt."""

    question: str
    answer: str
    source: str = ""
    """Id of the prompt from which it was drawn; empty if it was written by hand."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages around a prompt's text, which is the user's last message.

    Raises:
        UserError: a message is empty, or the prefix begins or ends with white space or has
            characters that nobody sees.
    """

    system: str | None = None
    """The system message; None leaves it to the model's chat format."""
    demonstrations: tuple[Demonstration, ...] = ()
    """Exchanges before the prompt, each a user message and the assistant's reply."""
    answer_prefix: str = ""
    """Beginning of the assistant's turn, such as "Answer:"; the answer is read after it."""

    def __post_init__(self) -> None:
        for shown in self.demonstrations:
            if not isinstance(shown, Demonstration):
                raise UserError(
                    f"a demonstration is {described(shown)}; expected Demonstration(question, "
                    "answer)"
                )
        for _, text in self.turns:
            if not isinstance(text, str) or not text.strip():
                raise UserError(
                    f"a system or demonstration message is {shortened(repr(text))}; expected a "
                    "non-empty string"
                )
        prefix = self.answer_prefix
        if not isinstance(prefix, str) or prefix != prefix.strip():
            raise UserError(
                f"the answer prefix is {shortened(repr(prefix))}; expected a string without "
                "white space at its ends, since the answer adds it"
            )
        check_visible("answer prefix", prefix)

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """Role and content of each message before the prompt."""
        system = () if self.system is None else (("system", self.system),)
        return system + tuple(
            turn
            for shown in self.demonstrations
            for turn in (("user", shown.question), ("assistant", shown.answer))
        )

    def record(self) -> dict[str, object]:
        """The messages that there are, as the prompts table gives them."""
        shown = [
            {"question": shot.question, "answer": shot.answer}
            | ({"prompt_id": shot.source} if shot.source else {})
            for shot in self.demonstrations
        ]
        messages = {
            SYSTEM_PROMPT: self.system,
            "demonstrations": shown,
            ANSWER_PREFIX: self.answer_prefix,
        }
        return {name: what for name, what in messages.items() if what}

    def segments(self, turns: Sequence[Span]) -> dict[str, Span]:
        """The span of each segment before the prompt: system_prompt, shot1, shot2 ...

        A demonstration reaches from its question to the end of its answer, and contains what the
        chat template writes between the two. `turns` are the spans of all turns before the prompt,
        beginning with the system message, of this prompt or for all prompts, if there is one.
        """
        shown = list(turns[len(turns) - 2 * len(self.demonstrations) :])
        system = turns[: len(turns) - len(shown)]
        both = zip(shown[::2], shown[1::2], strict=True)
        shots = {f"shot{n}": (asked[0], said[1]) for n, (asked, said) in enumerate(both, start=1)}
        return {SYSTEM_PROMPT: system[0], **shots} if system else shots


ALONE = Messages()
"""No messages around the prompt's text."""


Content = tuple[str, Thought | None]
"""The parts of a prompt that change if segments are replaced: the text and the thought."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to a model, with everything needed to judge and explain the answer."""

    id: str
    """Unique within a prompt set."""
    text: str
    """The user message, before any chat template."""
    segments: Mapping[str, Span]
    """Named spans of characters in `text`, such as premise1, premise2, conclusion, question."""
    answer: Answer
    """The requested answer, and the correct one."""
    pair_id: str
    """Id shared by the two sides of a minimal pair, or by all members of a group of variants."""
    side: str
    """Role of the prompt within its group, such as "rulebreaker"."""
    factors: Mapping[str, str]
    """Properties that the design varies, such as rule and phrasing; each is a column in tables."""
    roles: Mapping[str, Span] = field(default_factory=dict)
    """Spans within segments, such as premise1_entity_a, that patching distinguishes."""
    messages: Messages = ALONE
    """The messages that the model reads around the text."""
    donors: tuple[Donor, ...] = ()
    """Replacements for segments."""
    thought: Thought | None = None
    """The thought after which the answer is read; its sentences are further segments."""

    def __post_init__(self) -> None:
        # A set may have 256,000 prompts, so the usual case must be fast.
        if not isinstance(self.answer, Answer):
            raise self._wrong(
                "answer", self.answer, "a Choice, a Label, a FreeText or a Completion"
            )
        for name in ("id", "text", "pair_id", "side"):
            text = getattr(self, name)
            if not isinstance(text, str) or not text:
                raise self._wrong(name, text, "a non-empty string")
        if not isinstance(self.messages, Messages):
            raise self._wrong("messages", self.messages, "Messages(...)")
        factors = self.factors
        if not isinstance(factors, Mapping) or not _are_texts(chain(factors, factors.values())):
            raise self._wrong("factors", factors, "texts by names that are texts")
        for name, spans in (("segments", self.segments), ("roles", self.roles)):
            if not _are_within(spans, len(self.text)):
                place = f"within a text of {len(self.text)} characters"
                raise self._wrong(name, spans, f"spans (start, end) by name {place}")
        # A reply that completes a fact may repeat the sentence, as those of examples do.
        if self.messages.answer_prefix and not isinstance(self.answer, Completion):
            self._check_prefix(self.messages.answer_prefix)

    def __repr__(self) -> str:
        about = {
            "side": self.side,
            "gold": self.answer.gold,
            "segments": ", ".join(self.segments),
            "donors": str(len(self.donors) or ""),
        }
        shown = "".join(f"; {name}: {shortened(what, 80)}" for name, what in about.items() if what)
        return f"Prompt({shortened(self.id, 60)!r}, {shortened(self.text)!r}{shown})"

    def _check_prefix(self, prefix: str) -> None:
        """Reject a prefix that would repeat the end of the text."""
        last = self.text.rstrip().rpartition("\n")[2]
        line, begun = ("".join(text.split()).casefold() for text in (last, prefix))
        if line.endswith(begun) or (line.endswith(":") and begun.startswith(line)):
            raise UserError(
                f"the text of prompt {shortened(self.id, 60)!r} already ends in "
                f"{shortened(last[-40:])!r}, so the answer prefix {shortened(prefix, 60)!r} would "
                "stand there twice; omit the prefix, or the end of the text"
            )

    def _wrong(self, name: str, got: object, expected: str) -> UserError:
        return UserError(
            f"prompt {shortened(str(self.id), 60)!r}: {name} is {described(got)}; "
            f"expected {expected}"
        )

    @property
    def content(self) -> Content:
        """The text and the thought after it."""
        return self.text, self.thought

    def segment_text(self, name: str) -> str:
        """The characters of a segment, or of a sentence of the thought; else a UserError."""
        sentences = {} if self.thought is None else self.thought.segments
        if self.thought is not None and name in sentences:
            return self.thought.sentence(name)
        if name not in self.segments:
            names = ", ".join([*self.segments, *sentences])
            raise UserError(f"prompt {self.id} has no segment {name!r}; it has {names}")
        return self.text[slice(*self.segments[name])]


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_within(spans: Mapping[str, Span], length: int) -> bool:
    try:
        within = all(0 <= start <= end <= length for start, end in spans.values())
        return within and _are_texts(spans)
    except (AttributeError, TypeError, ValueError):  # no mapping, or not of pairs of numbers
        return False


def compose(parts: list[tuple[str | None, str]]) -> tuple[str, dict[str, Span]]:
    """The joined text of parts (segment name or None, text), and the span of each named part."""
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
    """Spans in the whole text by name, given the spans within each segment."""
    return {
        name: (segments[segment][0] + start, segments[segment][0] + end)
        for segment, spans in within.items()
        for name, (start, end) in spans.items()
    }
