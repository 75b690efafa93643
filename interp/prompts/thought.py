"""A model's thought before its answer, cut into sentences."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

Span = tuple[int, int]
"""A half-open range of characters, (start, end)."""

END = "end_of_thought"
"""The role of the mark that ends a thought, after which the answer is read."""

PART = "thought"
"""Prefix of the names of a thought's segments: thought1, thought2 ..."""

_EDGE = re.compile(
    r"(?P<mark>(?<![.!?…])[.!?…]+[\"'”’)\]*]*)\s+|(?P<wide>[。！？]+[”’」』）]*)\s*|\n\s*"
)
"""A possible end of a sentence, with the white space after it. Only the first of several marks is
tried, since a line of very many would else take minutes."""

_NEAR = 64
"""Number of characters before a mark that tell whether a sentence ends there."""

_SHORT = re.compile(r"(?:^|[\s(])(?:[A-Za-z]|Dr|Mr|Mrs|Ms|St|Mt|Prof|e\.g|i\.e)$|^\s*\d+$")
"""Text before a full stop that marks an abbreviation or the number of a list item."""


@dataclass(frozen=True)
class Thought:
    """The text that a model writes between the generation prompt and its answer."""

    before: str
    """The mark that begins the thought; empty if the generation prompt contains it."""
    sentences: tuple[str, ...]
    """Its sentences, each with the white space after it."""
    after: str
    """The text between the last sentence and the answer: the end mark and the white space around
    it."""
    ended: bool = True
    """Whether the thought reached its end mark; if not, no answer can be read after it."""

    @cached_property
    def text(self) -> str:
        """The thought without the marks around it."""
        return "".join(self.sentences).rstrip()

    @cached_property
    def written(self) -> str:
        """Everything between the generation prompt and the answer."""
        return self.before + self.text + self.after

    @cached_property
    def segments(self) -> Mapping[str, Span]:
        """The nonblank sentences as spans of `written`: thought1, thought2 ..."""
        spans: dict[str, Span] = {}
        start = len(self.before)
        for number, sentence in enumerate(self.sentences, 1):
            if sentence.strip():
                blank = len(sentence) - len(sentence.lstrip())
                spans[f"{PART}{number}"] = (start + blank, start + len(sentence.rstrip()))
            start += len(sentence)
        return spans

    @property
    def roles(self) -> Mapping[str, Span]:
        """The end mark, as a span of `written`; empty if there is no end mark."""
        if not self.after.strip():
            return {}
        start = len(self.written) - len(self.after.lstrip())
        return {END: (start, len(self.written.rstrip()))}

    def sentence(self, segment: str) -> str:
        """The sentence for a segment, stripped of white space; empty if the thought lacks it."""
        return self.written[slice(*self.segments.get(segment, (0, 0)))]

    def exchanged(self, texts: Mapping[str, str]) -> "Thought":
        """The thought with some sentences replaced; an empty replacement leaves no gap."""

        def kept(number: int, sentence: str) -> str:
            text = texts.get(f"{PART}{number}")
            if text is None:
                return sentence
            return text and text + sentence[len(sentence.rstrip()) :]

        return self.holding([kept(*numbered) for numbered in enumerate(self.sentences, 1)])

    def holding(self, sentences: Sequence[str]) -> "Thought":
        """The thought with other sentences, such as only its first few, between its marks."""
        return replace(self, sentences=tuple(sentences))

    def record(self) -> list[object]:
        """The full content, for hashing."""
        return [self.before, list(self.sentences), self.after, self.ended]


def is_part(segment: str) -> bool:
    """Whether a segment is a sentence of a thought."""
    return re.fullmatch(rf"{PART}[0-9]+", segment) is not None


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, each with the white space after it; joined, they are the text.

    A sentence ends at the end of a line, or with a mark (. ! ? …) before white space. A full stop
    does not end a sentence after a single letter, an abbreviation or the number of a list item, or
    directly after a word if the next word begins with a lowercase letter.
    """
    sentences, start = [], 0
    for edge in _EDGE.finditer(text):
        before = text[max(start, edge.start() - _NEAR) : edge.start()]
        following = text[edge.end() : edge.end() + 1]
        attached = edge["mark"] == "." and "\n" not in edge[0] and before[-1:].strip()
        if not before.strip() or (attached and (following.islower() or _SHORT.search(before))):
            continue
        sentences.append(text[start : edge.end()])
        start = edge.end()
    return (*sentences, text[start:]) if text[start:] else tuple(sentences)
