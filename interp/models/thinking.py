"""The marks around a thought, and the frame in which a model answers with or without a thought.

A model answers directly after an empty thought. Most templates write the empty thought if thinking
is switched off; for a template without a switch, this module writes one, and a note says so.
Otherwise, the model answers after a thought of its own, which ends with a mark. The marks are taken
from the first of these sources that contains marks:

1. a message with a thought, as the template writes it;
2. the source of the template;
3. the vocabulary: <think> and </think>, [THINK] and [/THINK] ...
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transformers import PreTrainedTokenizerBase

from interp.errors import UserError
from interp.models.chat_template import (
    ANSWER,
    MARKER,
    ChatFrame,
    Turn,
    answer_opening,
    chat_frame,
    render,
    write,
)
from interp.models.loading import ChatFormat
from interp.prompts.marks import MARK, end_of, ends_thought
from interp.prompts.thought import Thought, split_sentences

_THOUGHT = "Which thought is 7d793037?"


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """The text around a thought, between the generation prompt and the answer."""

    begin: str
    """The mark that begins a thought, with white space; empty if the generation prompt contains
    it."""
    closing: str
    """White space between the thought and the mark that ends it."""
    end: str
    """The mark that ends the thought, such as "</think>"."""
    opening: str
    """White space between the end mark and the answer."""
    fixed: bool
    """Whether the template writes `opening`; if not, it is taken from the generated text."""

    def thought(self, text: str) -> Thought:
        """The given text as a thought between these marks."""
        after = self.closing + self.end + self.opening
        return Thought(self.begin, split_sentences(text), after)

    def cut(self, generated: str) -> tuple[Thought, str]:
        """The thought at the beginning of a generated text, and the answer after it."""
        text, ended, rest = generated.partition(self.end)
        head = re.match(rf"\s*(?:{re.escape(self.begin.strip())})?\s*", text)
        before = head[0] if head else ""
        body = text[len(before) :]
        answer = rest.lstrip()
        opening = rest[: len(rest) - len(answer)] if answer and not self.fixed else self.opening
        closing = body[len(body.rstrip()) :]
        if not ended:
            return Thought(before, split_sentences(body), "", ended=False), ""
        return Thought(before, split_sentences(body), closing + ended + opening), answer


def thinking_frame(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, turns: Sequence[Turn] = ()
) -> ChatFrame:
    """The frame up to the point where the model begins its thought or answer; see `chat_frame`."""
    frame = chat_frame(tokenizer, chat, turns)
    if chat.thinks or not frame.templated:
        return frame
    before_answer = [*turns, ("user", MARKER)]
    off = frame.before + MARKER + frame.after
    opening = answer_opening(tokenizer, chat, before_answer, off)
    if MARK.search(opening):  # the answer channel, or an empty thought
        return replace(frame, direct=opening, answer_opening="")
    if not thinks_anyway(tokenizer, chat, frame, before_answer):
        return frame
    marks = find_marks(tokenizer, chat, turns)
    if marks is None:
        return frame
    return replace(frame, direct=marks.thought("").written, answer_opening="")


def thinks_anyway(
    tokenizer: PreTrainedTokenizerBase,
    chat: ChatFormat,
    frame: ChatFrame,
    before_answer: Sequence[Turn] = (("user", MARKER),),
) -> str:
    """The mark that opens a thought, if no switch can turn thoughts off; otherwise empty.

    No switch can turn thoughts off if the template opens a thought after the message, or if it
    mentions thoughts but writes the same text whether its switch is on or off.
    """
    if not frame.templated:
        return ""
    if written := MARK.findall(frame.after):
        return "" if ends_thought(written[-1]) else str(written[-1])
    marks = MARK.findall(tokenizer.get_chat_template())
    if not marks:
        return ""
    texts = {
        write(tokenizer, replace(chat, **way), before_answer) for way in ({"thinking": "on"}, _OFF)
    }
    return str(marks[0]) if len(texts) == 1 else ""


_OFF: dict[str, Any] = {"thinking": "off", "end_of_thought": None}


def find_marks(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, turns: Sequence[Turn] = ()
) -> ThoughtMarks | None:
    """The marks around thoughts, or None without any in template (`chat_frame`) and vocabulary."""
    on = replace(chat, thinking="on")
    frame = chat_frame(tokenizer, on, turns)
    before_answer = [{"role": role, "content": text} for role, text in (*turns, ("user", MARKER))]
    marks = None
    if frame.templated:
        before = frame.before + MARKER + frame.after
        written = (_written(tokenizer, on, before_answer, before, said) for said in _said())
        marks = next(filter(None, written), None)
    marks = marks or _named(tokenizer, chat, frame, turns)
    if chat.end_of_thought is None or (marks and marks.end == chat.end_of_thought):
        return marks
    return ThoughtMarks(marks.begin if marks else "", "", chat.end_of_thought, "", fixed=False)


def _said() -> Iterator[dict[str, Any]]:
    """A message with a thought and an answer, in each of the forms that templates accept."""
    names = ("reasoning_content", "reasoning", "thinking")
    yield {"role": "assistant", "content": ANSWER, **dict.fromkeys(names, _THOUGHT)}
    for thought in (_THOUGHT, [{"type": "text", "text": _THOUGHT}]):
        parts = [{"type": "thinking", "thinking": thought}, {"type": "text", "text": ANSWER}]
        yield {"role": "assistant", "content": parts}


def _written(
    tokenizer: PreTrainedTokenizerBase,
    chat: ChatFormat,
    before_answer: Sequence[dict[str, Any]],
    before: str,
    said: dict[str, Any],
) -> ThoughtMarks | None:
    """The marks that the template writes around a message's thought, if it writes one."""
    try:
        text = render(tokenizer, chat, [*before_answer, said], generation=False)
    except UserError:
        return None
    begin, thought, rest = text[len(before) :].partition(_THOUGHT)
    between, answered, _ = rest.partition(ANSWER)
    end = between.strip()
    marked = MARK.search(end) or end == chat.end_of_thought
    if not (text.startswith(before) and thought and answered and marked):
        return None
    start = between.index(end)
    return ThoughtMarks(begin, between[:start], end, between[start + len(end) :], fixed=True)


def _named(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, frame: ChatFrame, turns: Sequence[Turn]
) -> ThoughtMarks | None:
    """The marks in the template's source or in the vocabulary, with white space around them."""
    template = tokenizer.get_chat_template() if frame.templated else ""
    # Gemma's vocabulary has <unused94>, which MedGemma alone writes before a thought.
    added = (mark for mark in tokenizer.get_added_vocab() if not mark.startswith("<unused"))
    marks = [*MARK.findall(template), *filter(MARK.fullmatch, added)]
    ends = [mark for mark in marks if ends_thought(mark)]
    begins = [mark for mark in marks if not ends_thought(mark) and end_of(mark)]
    if not ends and not begins:
        return None
    end = ends[0] if ends else end_of(begins[0])
    default = end.replace("/", "", 1) if "/" in end else ""
    begin = next((mark for mark in begins if end_of(mark).lower() == end.lower()), default)
    lines = "\n" if end == "</think>" else ""
    opened = re.search(rf"{re.escape(begin)}(\s*)$", frame.after)
    if opened:
        lines = opened[1]
        return ThoughtMarks("", lines, end, lines * 2, fixed=False)
    if frame.templated:  # an empty thought shows the white space around the marks
        off = chat_frame(tokenizer, replace(chat, **_OFF), turns)
        empty = re.search(rf"{re.escape(begin)}(\s*){re.escape(end)}(\s*)$", off.after)
        if empty:
            inner = empty[1]
            half = len(inner) - len(inner) // 2
            opening = empty[2] + off.answer_opening
            return ThoughtMarks(begin + inner[:half], inner[half:], end, opening, fixed=False)
    return ThoughtMarks(begin + lines, lines, end, lines * 2, fixed=False)
