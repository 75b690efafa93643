"""One text that a model wrote after a prompt, as another tool stored it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from interp.prompts.marks import answer_start, begins_thought, without_thought

Ending = Literal["stop", "length", "refused"]

_AT_LIMIT = re.compile(
    "(model_)?length|max_(output_)?tokens|model_context_window_exceeded", re.IGNORECASE
)
"""What tools call the end of a text at its largest length."""

NOT_CUT = re.compile("stop(_sequence)?|eos(_token)?|end_turn|completed?|tool_calls", re.IGNORECASE)
"""What tools call an end before the largest length."""

_REFUSED = re.compile(
    "refusal|refused|content_filter(ed)?|guardrail_intervened|error_toxic"
    "|(image_)?(safety|prohibited_content|recitation)|blocklist|spii",
    re.IGNORECASE,
)
"""What tools call the end of a text that the model, or its provider, declined to write."""


@dataclass(frozen=True, slots=True)
class Output:
    """A stored text, with what its file says about where it belongs."""

    where: str
    """Location in the file, such as "answers.jsonl, line 3"."""
    text: str
    """The text after the prompt, with its thought unless `thought` holds that."""
    prompt_id: str | None = None
    """The prompt's id; None if the file names none."""
    prompt: str | None = None
    """The prompt's text; None if the file does not hold it."""
    rendered: bool = False
    """Whether `prompt` is all that the model read, of which the prompt's own text is a part."""
    model: str | None = None
    """The model's name; None if the file names none."""
    draw: int = 0
    """Index of the text among those on the same prompt."""
    thought: str | None = None
    """The thought, if the file holds it apart from the text."""
    finished: Ending | None = None
    """How the text ended; None if the file does not tell."""
    cut: bool = False
    """Whether the text ends within its thought, so that it has no answer."""
    filter: str = ""
    """The name of the filter through which lm-eval stored the text; empty if there is none."""
    chosen: str | None = None
    """The answer that lm-eval took: what its filter left of the text or, if there is no text, the
    option with the largest log-likelihood."""
    error: str = ""
    """Why there is no text; empty if there is one."""

    @property
    def answer(self) -> str:
        """The text after the thought, or what lm-eval chose; empty if there is none."""
        if self.cut:
            return ""
        text = self.text if self.chosen is None else self.chosen
        return text.strip() if self.thought is not None else without_thought(text)


def with_cuts(outputs: Sequence[Output]) -> list[Output]:
    """The texts of one model, each with whether it ends within its thought.

    A text does if its thought begins but does not end, if it is nothing but a thought when it
    reaches its largest length, or if others have thoughts and it has no mark, unless it ended by
    itself (a file that tells no ending cannot say so).
    """
    starts = {output: _start(output) for output in outputs}
    marked, apart = any(starts.values()), any(output.thought is not None for output in outputs)

    def is_cut(output: Output) -> bool:
        length, start = output.finished == "length", starts[output]
        if output.error or start or (output.chosen is not None and not output.text):
            return False
        if start is None or (length and not output.text.strip()):
            return True
        if output.thought is not None:
            return False
        return (marked or apart) if length else marked and output.finished is None

    return [replace(output, cut=True) if is_cut(output) else output for output in outputs]


def _start(output: Output) -> int | None:
    """Where the answer begins (`answer_start`) in a text whose prompt may open its thought."""
    if output.thought is not None or output.error:
        return 0
    start = answer_start(output.text.strip())
    opened = output.rendered and begins_thought((output.prompt or "").rstrip()[-80:])
    return None if start == 0 and opened else start


def ending(reason: str | None) -> Ending | None:
    """How a text ended, from what a tool calls it."""
    if not reason:
        return None
    if _REFUSED.fullmatch(reason):
        return "refused"
    return "length" if _AT_LIMIT.fullmatch(reason) else "stop"


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """The texts of one model that were judged, or that are read as its thoughts."""

    file: str
    """Names of the files."""
    texts: int
    draws: int
    """The largest number of texts on one prompt."""
    problems: tuple[str, ...] = ()
    """What did not fit the prompts, with numbers and examples."""
