"""The texts that are read to study thoughts: prompts with whole, partial or replaced thoughts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from interp.choices import ALL
from interp.models.model import Model
from interp.prompts.mixing import donors_of, mixed
from interp.prompts.prompt import Donor, Prompt
from interp.prompts.thought import Thought
from interp.tables import Row

DOT = "..."
"""The filler that replaces a thought (Lanham et al. 2023, Section 2.5)."""

Draws = Sequence[Thought]

Reading = tuple[Row, Prompt]
"""Columns of a row, and a prompt followed by a thought, part of a thought, or a replacement."""


@dataclass(frozen=True)
class Changed:
    """A prompt with one or all segments from a donor."""

    donor: Donor
    segment: str
    prompt: Prompt


@dataclass(frozen=True)
class Studied:
    """A prompt, its changed prompts, and the thoughts on all of them, draw by draw."""

    prompt: Prompt
    own: Draws
    """Thoughts on the prompt."""
    changed: Sequence[tuple[Changed, Draws]]
    again: Mapping[int, Draws]
    """Thoughts that begin with the first k sentences of `first`, by k."""

    @property
    def drawn(self) -> Iterator[tuple[int, Thought]]:
        """The ended thoughts on the prompt, each with the index of its draw."""
        return ((draw, thought) for draw, thought in enumerate(self.own) if thought.ended)

    @cached_property
    def first(self) -> Thought | None:
        """The first ended thought on the prompt; its sentences are studied."""
        return next((thought for _, thought in self.drawn), None)

    def texts(self, model: Model) -> Iterator[Prompt]:
        """All texts to read."""
        yield from (text for _, text in self.readings(model))
        for changed, draws in self.changed:
            for t, other in zip(self.own, draws, strict=True):
                if t.ended and other.ended:
                    pairs = product((self.prompt, changed.prompt), (t, other))
                    yield from (after(prompt, thought) for prompt, thought in pairs)
        for *_, texts in self.sentences():
            yield from texts
        for draws in self.again.values():
            yield from (after(self.prompt, thought) for thought in draws if thought.ended)

    def readings(self, model: Model) -> Iterator[Reading]:
        """Each ended thought: empty, cut after each sentence, whole, and replaced."""
        for draw, thought in self.drawn:
            count = len(thought.sentences)
            yield self._reading(thought, draw, "empty", 0, ())
            for number in range(1, count):
                yield self._reading(thought, draw, "first", number, thought.sentences[:number])
            yield self._reading(thought, draw, "whole", count, thought.sentences)
            dots = len(model.tokenizer(thought.text, add_special_tokens=False)["input_ids"])
            yield self._reading(thought, draw, "filler", None, [" ".join([DOT] * dots)])
            for other in self._others(draw):
                yield self._reading(thought, draw, "placebo", None, other.sentences)
                if thought is self.first:
                    yield from self._mistakes(thought, draw, other)

    def _mistakes(self, thought: Thought, draw: int, other: Thought) -> Iterator[Reading]:
        """The thought with one sentence taken from `other`, for each sentence that differs."""
        for place, pair in enumerate(zip(thought.sentences, other.sentences, strict=False)):
            if pair[0].strip() != pair[1].strip():
                said = exchanged(thought.sentences, place, pair[1])
                yield self._reading(thought, draw, "mistake", place + 1, said)

    def _reading(
        self, thought: Thought, draw: int, kind: str, number: int | None, said: Sequence[str]
    ) -> Reading:
        counts = {"sentence": number, "sentences": len(thought.sentences)}
        return {"draw": draw, "reading": kind, **counts}, after(self.prompt, thought.holding(said))

    def _others(self, draw: int) -> Iterator[Thought]:
        """The thought of the same draw on another instance's prompt, if it ended."""
        for changed, draws in self.changed:
            if changed.segment == ALL and changed.donor.kind == "instance":
                yield from (thought for thought in draws[draw : draw + 1] if thought.ended)
                return

    def sentences(self) -> Iterator[tuple[int, str, list[Prompt]]]:
        """Each sentence of the first thought, with its place and the prompts without it.

        In the first prompt, the sentence is omitted. In the second, if any, it is replaced by the
        sentence at the same place in another draw.
        """
        if self.first is None:
            return
        said = self.first.sentences
        for place, sentence in enumerate(said):
            texts = [self.first.holding([*said[:place], *said[place + 1 :]])]
            others = (t.sentences[place] for _, t in self.drawn if len(t.sentences) > place)
            different = (other for other in others if other.strip() != sentence.strip())
            texts += [
                self.first.holding(exchanged(said, place, other)) for other in list(different)[:1]
            ]
            yield place, sentence, [after(self.prompt, thought) for thought in texts]


def after(prompt: Prompt, thought: Thought) -> Prompt:
    """The prompt with a thought, and without segments, since only answers are read."""
    return replace(prompt, thought=thought, segments={}, roles={}, donors=())


def exchanged(sentences: Sequence[str], place: int, other: str) -> list[str]:
    """The sentences, with the one at `place` replaced; the white space after it is kept."""
    space = sentences[place][len(sentences[place].rstrip()) :]
    return [*sentences[:place], other.rstrip() + space, *sentences[place + 1 :]]


def changed_prompts(prompt: Prompt) -> Iterator[Changed]:
    """For each donor, the prompt with each single segment, and then all segments, from that donor.

    The other side of the pair always replaces all segments at once.
    """
    for donor in donors_of(prompt, "instance"):
        for segment in donor.segments:
            kept = [name for name in donor.segments if name != segment]
            yield Changed(donor, segment, mixed(prompt, donor, kept=kept))
        yield Changed(donor, ALL, mixed(prompt, donor))
    for donor in donors_of(prompt, "counterpart"):
        yield Changed(donor, ALL, mixed(prompt, donor))
