"""Find the prompts of stored texts, by id and by text.

What a file names by an id must also have the text of the prompt with this id, if the file holds
texts; what it does not name is found by its text, if only one prompt has it. A text that is all
that a model read, such as a rendered chat template, holds the prompt's text, near its end.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from interp.console import counted
from interp.errors import one_line, shortened
from interp.prompts.marks import unknown_marks
from interp.prompts.prompt import Prompt
from interp.stored.output import Output

NAMED = 3
"""Number of texts or prompts that a message names."""

_Text = TypeVar("_Text", str, str | None)

_SEARCHED = 64
"""Number of texts in which every prompt is searched, which takes long; others are found by what
these have after the prompt's own text."""

_WRONG = {
    "strange": "match no prompt by id or text",
    "differing": "have the id of a prompt with another text",
    "unclear": "have no id, and a text that several prompts have",
    "failed": "are requests that failed",
    "cut": "end within their thought, so that they have no answer",
}
"""Kinds of texts that fit no prompt or have no answer, and what is said of them."""


@dataclass(frozen=True)
class Matched:
    """The texts of one model, by prompt, and what did not fit."""

    outputs: Mapping[str, tuple[Output, ...]]
    """The texts by the id of their prompt, in the order of their draws."""
    texts: int
    prompts: int
    """Numbers of texts in the file, and of prompts."""
    wrong: Mapping[str, Sequence[str]]
    """The places of texts of each kind (`_WRONG`), with their id or the reason."""
    lacking: tuple[str, ...]
    """Ids of the prompts without a text."""
    unknown: Mapping[str, int]
    """Marks in at least half of the texts that are not known, and in how many texts they are."""

    @property
    def draws(self) -> int:
        """The largest number of texts on one prompt."""
        counts = (sum(not output.error for output in texts) for texts in self.outputs.values())
        return max(counts, default=0)

    def problems(self) -> list[str]:
        """A part of a sentence about each kind of text or prompt that did not fit."""
        texts, prompts = counted(self.texts, "text"), counted(self.prompts, "prompt")
        kinds = [(places, texts, _WRONG[kind]) for kind, places in self.wrong.items()]
        lines = [
            f"{len(misfits):,} of {all_} {what}, such as {_some(misfits)}"
            for misfits, all_, what in (*kinds, (self.lacking, prompts, "have no text"))
            if misfits
        ]
        lines += (
            f"{count:,} of {texts} have the mark {mark}, which is known neither as one of thoughts "
            "nor of answers, so that it is read as text"
            for mark, count in self.unknown.items()
        )
        return lines


def _plain(text: _Text) -> _Text:
    """A text without the carriage returns of Windows."""
    return text and text.replace("\r\n", "\n")


def _some(named: Sequence[str]) -> str:
    return ", ".join(shortened(one_line(name), 120) for name in named[:NAMED])


class Matcher:
    """Prompts, to be found by id and text."""

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self.prompts = prompts
        self._texts = {prompt.id: _plain(prompt.text).strip() for prompt in prompts}
        self._ids: defaultdict[str, list[str]] = defaultdict(list)
        for id_, text in self._texts.items():
            self._ids[text].append(id_)
        self._lengths = sorted({len(text) for text in self._ids if text}, reverse=True)
        # What followed the prompt's text in what models read.
        self._ends = {"": None}
        self._searched = 0

    def match(self, outputs: Sequence[Output]) -> Matched:
        """The texts of one model by prompt; a draw that is there again counts as another draw."""
        by_prompt: dict[str, list[Output]] = {}
        wrong: dict[str, list[str]] = {kind: [] for kind in _WRONG}
        for output in outputs:
            id_, kind = self._prompts_of(output)
            if kind:
                named = f" (id {output.prompt_id!r})" if output.prompt_id is not None else ""
                wrong[kind].append(f"{output.where}{named}")
            else:
                by_prompt.setdefault(id_, []).append(output)
        drawn = {}
        for id_, texts in by_prompt.items():
            # Requests that failed, which may have been repeated, come last.
            drawn[id_] = tuple(sorted(texts, key=lambda output: (bool(output.error), output.draw)))
            repeated = "" if drawn[id_][0].error else "; repeated with success"
            wrong["failed"] += [
                f"{output.where} ({output.error.removeprefix('the request failed: ')}{repeated})"
                for output in drawn[id_]
                if output.error
            ]
        kept = [output for output in chain.from_iterable(drawn.values()) if not output.error]
        wrong["cut"] = [output.where for output in kept if output.cut]
        lacking = tuple(id_ for id_ in self._texts if id_ not in drawn)
        unknown = unknown_marks([output.text if output.cut else output.answer for output in kept])
        return Matched(drawn, len(outputs), len(self._texts), wrong, lacking, unknown)

    def _prompts_of(self, output: Output) -> tuple[str, str]:
        """The id of a text's prompt, or why it has none."""
        text, named = _plain(output.prompt), output.prompt_id
        if named in self._texts and named is not None:
            prompt = self._texts[named]
            same = text is None or (prompt in text if output.rendered else prompt == text.strip())
            return (named, "") if same else ("", "differing")
        if text is None and named is not None:  # some name prompts by their text
            text = _plain(named)
        if text is None:
            return "", "strange"
        ids = self._within(text) if output.rendered else self._ids.get(text.strip(), [])
        return (ids[0], "") if len(ids) == 1 else ("", "unclear" if ids else "strange")

    def _within(self, read: str) -> Sequence[str]:
        """The ids of the prompts whose text is the last one in what a model read."""
        for end in self._ends:
            if read.endswith(end) and (ids := self._at_end(read.removesuffix(end))):
                return ids
        if self._searched >= _SEARCHED:
            return ()
        self._searched += 1
        places = {text: read.rfind(text) + len(text) for text in self._ids if text and text in read}
        if not places:
            return ()
        text = max(places, key=lambda prompt: (places[prompt], len(prompt)))
        self._ends[read[places[text] :]] = None
        return self._ids[text]

    def _at_end(self, read: str) -> Sequence[str]:
        """The ids of the prompts with the longest text at the end of another."""
        read = read.rstrip()
        ends = (read[len(read) - length :] for length in self._lengths if length <= len(read))
        return next((self._ids[end] for end in ends if end in self._ids), ())
