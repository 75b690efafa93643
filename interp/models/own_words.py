"""The system prompt that a chat template writes although none was asked for.

The text before a first message is compared with the text between an answer and a second message,
which contains only marks and names of roles. What the first has in addition, without special
tokens and names of roles, is what the template says on its own.
"""

import re
from itertools import takewhile

from transformers import PreTrainedTokenizerBase

from interp.errors import UserError
from interp.models.chat_template import MARKER, ChatFrame, write
from interp.models.loading import ChatFormat

_ANSWER = "Answer 2b8e1c47."

_MARK = re.compile(r"<[^<>\s]*>|\[/?[A-Z_]+\]|<<[/A-Z]+>>")
"""Marks such as <|im_start|>, [INST] and <<SYS>> that may not be tokens of their own."""

_ROLES = re.compile(r"^\s*(?:system|developer)\b:?\s*", re.IGNORECASE)


def own_system_prompt(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, frame: ChatFrame
) -> str:
    """The template's own system prompt; empty without one, or if another was asked for."""
    if chat.system is not None or not frame.templated:
        return ""
    text = _plain(tokenizer, frame.before)  # without marks first, since two may end alike
    ends = zip(reversed(text), reversed(_plain(tokenizer, _between(tokenizer, chat))), strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    header = text[len(text) - alike :]
    # Few words only name a role, as in "GPT4 Correct User:"; the template says more.
    if len(_words(header)) <= 5:
        text = text.removesuffix(header)
    text = _ROLES.sub("", text).strip()
    # A template may write fewer words as names of roles.
    return text if len(_words(text)) >= 3 else ""


def _plain(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    for token in tokenizer.all_special_tokens:
        text = text.replace(token, " ")
    return _MARK.sub(" ", text).strip()


def _words(text: str) -> list[str]:
    """The words of a text; each Chinese or Japanese character counts as one."""
    return re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\d_]+", text)


def _between(tokenizer: PreTrainedTokenizerBase, chat: ChatFormat) -> str:
    """What the template writes between an answer and the next message; empty if it cannot."""
    turns = [("user", "Hello"), ("assistant", _ANSWER), ("user", MARKER)]
    try:
        text = write(tokenizer, chat, turns)
    except UserError:
        return ""
    return text.partition(_ANSWER)[2].partition(MARKER)[0]
