"""One text that a model wrote after a prompt, as another tool stored it."""

from dataclasses import dataclass
from typing import Literal

from interp.prompts.thought import without_thought

Ending = Literal["stop", "length"]

_AT_LIMIT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
"""What tools call the end of a text at its largest length."""


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
    finished: Ending = "stop"
    error: str = ""
    """Why there is no text; empty if there is one."""

    @property
    def answer(self) -> str:
        """The text after the thought; empty if the thought has no end."""
        return self.text.strip() if self.thought is not None else without_thought(self.text)


def ending(reason: str | None) -> Ending:
    """How a text ended, from what a tool calls it."""
    return "length" if reason in _AT_LIMIT else "stop"


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
