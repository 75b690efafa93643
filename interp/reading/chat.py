"""Write a prompt as a model reads it: in its own chat template, or plainly without one."""

from dataclasses import dataclass

from interp.errors import UserError
from interp.models.architectures import CAUSAL
from interp.models.chat_template import gap, write
from interp.models.model import Model
from interp.prompts.messages import ALONE
from interp.prompts.prompt import Prompt


@dataclass(frozen=True, slots=True)
class ChatText:
    """The text that a model reads for one prompt."""

    text: str
    message_start: int
    """Where the prompt's message begins in `text`; spans of the prompt are shifted by it."""
    templated: bool
    """Whether a chat template wrote it; if so it holds the special tokens already."""
    answer_opening: str = ""
    """White space that the template writes between the text and an answer; mostly none."""


def write_chat(prompt: Prompt, model: Model) -> ChatText:
    """The prompt's messages with the generation prompt (Chan et al. 2025, Section 4.2).

    The prompt's text is the last message of the user, behind what `Prompt.messages` says before it
    and before what the assistant has said already. A system prompt is written only where the prompt
    or `Model.chat` holds one; but some templates, as those of Qwen2.5 and Llama 3.1, insert one of
    their own. Templates that write the date get that of `Model.chat`, and those that can leave out
    a thought before the answer leave it out. Without a template, or where `Model.chat` says so, the
    messages are plain text: a question and its answer as one text, with an empty line between them
    and the next; a text alone is itself. Models that are no causal language models read the text
    alone.

    Raises:
        UserError: the template fails, or changes the message, so that spans would be lost; system
            prompts of both prompt and model; messages for a model that reads the text alone.
    """
    _check_messages(prompt, model)
    messages = prompt.messages
    frame = model.frame_behind(messages.turns)
    text = frame.before + prompt.text + frame.after
    if frame.templated:
        written = write(model.tokenizer, model.chat, prompt.text, messages.turns)
        if written != text:
            raise UserError(
                f"the chat template of {model.name} changes the message of prompt {prompt.id}, or "
                "writes something else around it than around others, so its segments cannot be "
                "located; expected the message verbatim"
            )
    start = len(frame.before)
    if not messages.answer_prefix:
        return ChatText(text, start, frame.templated, frame.answer_opening)
    opening = frame.answer_opening if frame.templated else gap(text)
    return ChatText(text + opening + messages.answer_prefix, start, frame.templated)


def _check_messages(prompt: Prompt, model: Model) -> None:
    if model.kind is not CAUSAL and (prompt.messages != ALONE or model.chat.system is not None):
        raise UserError(
            f"{model.name} is a {model.kind.name}, which reads the text of prompt {prompt.id} "
            "alone; leave system prompt, demonstrations and answer prefix out"
        )
    if prompt.messages.system is not None and model.chat.system is not None:
        raise UserError(
            f"prompt {prompt.id} has a system message of its own, and a system prompt was given "
            "for all; give one of the two"
        )
