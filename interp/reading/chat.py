"""Write a prompt as a model reads it: in its own chat template, or plainly without one."""

from dataclasses import dataclass

from interp.errors import UserError
from interp.models.chat_template import write
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.prompts.prompt import Prompt


@dataclass(frozen=True, slots=True)
class ChatText:
    """The text that a model reads for one prompt."""

    text: str
    message_start: int
    """Where the prompt's message begins in `text`; spans of the prompt are shifted by it."""
    templated: bool
    """Whether a chat template wrote it; if so it holds the special tokens already."""


def write_chat(prompt: Prompt, model: Model) -> ChatText:
    """One user message with the generation prompt (Chan et al., Section 4.2).

    A system prompt is written only where `Model.chat` holds one; but some templates, as those of
    Qwen2.5 and Llama 3.1, insert one of their own. Templates that write the date are told that of
    `Model.chat`. Without a template, or where `Model.chat` says so, the text is the message alone.

    Models that are no causal language models read the message alone.

    Raises:
        UserError: the template fails, or changes the message, so that spans would be lost; or a
            system prompt for a model that reads none.
    """
    if model.kind is not CAUSAL and model.chat.system is not None:
        raise UserError(
            f"{model.name} is a {model.kind.name}, which reads no system prompt; leave it out"
        )
    frame = model.chat_frame
    if not frame.templated:
        return ChatText(prompt.text, 0, templated=False)
    text = write(model.tokenizer, model.chat, prompt.text)
    if text != frame.before + prompt.text + frame.after:
        raise UserError(
            f"the chat template of {model.name} changes the message of prompt {prompt.id}, or "
            "writes something else around it than around others, so its segments cannot be "
            "located; expected the message verbatim"
        )
    return ChatText(text, len(frame.before), templated=True)
