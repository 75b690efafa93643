"""Write a prompt as a model expects it: its own chat template, or the plain message without one."""

from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from interp.errors import UserError
from interp.prompts.prompt import Prompt


@dataclass(frozen=True, slots=True)
class ChatText:
    """The text that a model reads for one prompt."""

    text: str
    message_start: int
    """Where the prompt's message begins in `text`; spans of the prompt are shifted by it."""
    templated: bool
    """Whether a chat template wrote it; if so it holds the special tokens already."""

    @property
    def answer_separator(self) -> str:
        """What stands before an answer: nothing in a chat, a space after a plain message."""
        return "" if self.templated else " "


def has_chat_template(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the model ships a chat template."""
    return bool(tokenizer.chat_template)


def write_chat(prompt: Prompt, tokenizer: PreTrainedTokenizerBase) -> ChatText:
    """One user message, no system prompt, generation prompt added (paper, Section 4.2).

    Raises:
        UserError: the template fails, or changes the message, so that spans would be lost.
    """
    if not has_chat_template(tokenizer):
        return ChatText(prompt.text, 0, templated=False)
    try:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt.text}],
            tokenize=False,
            add_generation_prompt=True,
        )
    except Exception as error:  # a template may raise anything, through Jinja
        raise UserError(
            f"the chat template of {tokenizer.name_or_path} cannot write a single user message: "
            f"{error}"
        ) from error
    assert isinstance(text, str)
    start = text.find(prompt.text)
    if start < 0:
        raise UserError(
            f"the chat template of {tokenizer.name_or_path} changes the message of prompt "
            f"{prompt.id}, so its segments cannot be located; expected the message verbatim"
        )
    return ChatText(text, start, templated=True)
