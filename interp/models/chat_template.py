"""The frame that a model's chat template writes around a message.

1. Several times, write a marker in place of the message, after the earlier turns. The text before
   and after the marker is the frame.
2. Write an answer after the message; the text between the message and the answer is the opening of
   every answer.
3. Reject a template that changes, loses or repeats the message, writes a different frame each time,
   or never ends.
"""

import json
import re
import resource
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from jinja2 import Environment
from transformers import PreTrainedTokenizerBase

from interp.errors import UserError, one_line, shortened
from interp.models.families.settings import SWITCHES
from interp.models.loading import ChatFormat
from interp.prompts.plain_text import paragraphs
from interp.prompts.thought import Span


@contextmanager
def limited(seconds: float, memory: int) -> Iterator[None]:
    """Raise a TimeoutError or a MemoryError if the block takes too much time or memory.

    `seconds` are processor time, which does not depend on the load of the machine; `memory` are
    bytes in addition to those that the process already uses, on Linux only. Python delivers signals
    only to the main thread, and a memory limit applies to the whole process, so blocks in other
    threads have no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"it takes more than {seconds:g} s")

    handler, limits = signal.signal(signal.SIGVTALRM, stop), resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_bytes().split()[0])
            most = pages * resource.getpagesize() + memory
            if limits[0] == resource.RLIM_INFINITY or most < limits[0]:
                resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
        yield
    except MemoryError as error:
        raise MemoryError(f"it takes more than {memory:,} bytes of memory") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)


RENDER_SECONDS = 2.0
"""Seconds of processor time that a template may use for one message; ordinary ones take 0.01."""

RENDER_BYTES = 2**28
"""Bytes of memory that a template may use for one message."""

TEMPLATE_CHARACTERS = 2**18
"""Largest number of characters of a template; the longest known have a tenth."""

FRAME_CHARACTERS = 100_000
"""Largest number of characters that a template may write around a message."""

LARGEST_NUMBER = 1_000_000
"""The largest number that a template may contain. A power, or a single operation on larger numbers,
can run forever inside Python itself, where no time limit can stop it."""

_STOPPED: dict[str, str] = {}
"""Templates that have exceeded a limit, with the reason."""

MARKER = "Where is message 5d41402a?"
ANSWER = "Yes"


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """The text that the template writes around a message, the same for every message."""

    before: str
    after: str
    """Text after the message, including the generation prompt."""
    answer_opening: str
    """White space that the template writes between `after` and the answer; usually empty."""
    templated: bool
    """Whether a chat template wrote the frame, which then already contains the special tokens."""
    direct: str = ""
    """Text added after `after` to suppress a thought if the template has no switch for this: an
    empty thought, or the opening of the answer channel."""
    turns: tuple[Span, ...] = ()
    """Where `before` has the content of the system prompt, if one was asked for, and of each
    earlier turn."""

    def record(self) -> dict[str, str | bool]:
        """The texts, for records and hashes; prompts have the turns."""
        return {name: text for name, text in asdict(self).items() if name != "turns"}


PLAIN = ChatFrame("", "", "", templated=False)
"""The empty frame, with no text around the message."""


Turn = tuple[str, str]
"""A message's role (system, user or assistant) and its content."""


def check_templates(name: str, tokenizer: PreTrainedTokenizerBase, chat: ChatFormat) -> None:
    """Raise a UserError if a template is too long, or of several that are used, none is default."""
    templates = tokenizer.chat_template
    texts = templates.values() if isinstance(templates, dict) else [templates or ""]
    longest = max(map(len, texts), default=0)
    if longest > TEMPLATE_CHARACTERS:
        raise UserError(
            f"{one_line(name)} has a chat template of {longest:,} characters; expected at most "
            f"{TEMPLATE_CHARACTERS:,}"
        )
    if chat.template and isinstance(templates, dict) and templates and "default" not in templates:
        names = shortened(", ".join(sorted(map(str, templates))))
        raise UserError(
            f"{one_line(name)} has no default chat template, only named ones ({names}); rename "
            "one of them to default, or write prompts without a template (--no-chat-template)"
        )


def chat_frame(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, turns: Sequence[Turn] = ()
) -> ChatFrame:
    """The frame that a model's chat template writes around a message, including the earlier turns.

    Without a template, the frame consists only of the system prompt and the earlier turns, in plain
    text.

    Raises:
        UserError: the template fails; changes, loses or repeats a message; writes a different
            frame each time; or omits a turn or the system prompt.
    """
    if not (chat.template and tokenizer.chat_template):
        if chat.system and chat.system.strip():
            turns = [("system", chat.system), *turns]
        parts = paragraphs(turns)
        starts = accumulate(map(len, parts), initial=0)
        spans = tuple((at, at + len(said)) for at, (_, said) in zip(starts, turns, strict=False))
        return ChatFrame("".join(parts), "", "", templated=False, turns=spans)
    template = f"the chat template of {tokenizer.name_or_path}"
    before_answer = [*turns, ("user", MARKER)]
    # Several times, since the output of a template may vary.
    texts = {write(tokenizer, chat, before_answer) for _ in range(8)}
    if len(texts) > 1:
        raise UserError(
            f"{template} writes a different frame each time, so results would not be "
            "reproducible; measure without the template, or make the template deterministic"
        )
    (text,) = texts
    before, *rest = text.split(MARKER)
    if len(rest) != 1:
        how = "repeats" if rest else "changes"
        raise UserError(
            f"{template} {how} the message, so its segments cannot be located; expected the "
            "message verbatim, once"
        )
    if chat.system is not None and chat.system.strip() not in text:
        raise UserError(f"{template} does not write a system prompt; omit the system prompt")
    for role, content in turns:
        if content.strip() not in before:
            raise UserError(
                f"{template} does not write the {role} message before the prompt, "
                f"{content!r:.60}; omit this message"
            )
    opening = answer_opening(tokenizer, chat, before_answer, text)
    opening = opening if opening.isspace() else ""
    earlier = turns or (chat.system and chat.system.strip())
    spans = _turn_spans(tokenizer, chat, turns, before) if earlier else ()
    return ChatFrame(before, rest[0], opening, templated=True, turns=spans)


def _turn_spans(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, turns: Sequence[Turn], before: str
) -> tuple[Span, ...]:
    """Where the text before the message has the content of each earlier turn.

    The template writes marks in place of the contents. A search for the contents themselves could
    find them inside each other, or in the template's own words.
    """
    contents = [content for _, content in turns]
    marks = [f"Turn 4f1d2a{number:06}." for number in range(len(turns) + 1)]
    marked = [(role, mark) for (role, _), mark in zip(turns, marks, strict=False)]
    if chat.system and chat.system.strip():
        contents, marks = [chat.system, *contents], [marks[-1], *marks[:-1]]
        chat = replace(chat, system=marks[0])
    else:
        marks = marks[:-1]
    text = write(tokenizer, chat, [*marked, ("user", MARKER)]).partition(MARKER)[0]
    lead, *pieces = re.split(f"({'|'.join(marks)})", text)
    at, spans = len(lead), dict[str, Span]()
    for mark, rest in zip(pieces[::2], pieces[1::2], strict=True):
        content = contents[marks.index(mark)]
        # Many templates remove white space at the ends of a message.
        fits = [form for form in (content, content.strip()) if before.startswith(form + rest, at)]
        if not fits or mark in spans:
            break
        spans[mark] = (at, at + len(fits[0]))
        at += len(fits[0] + rest)
    if len(spans) < len(marks) or at < len(before) or not before.startswith(lead):
        raise UserError(
            f"the chat template of {tokenizer.name_or_path} changes or repeats a message before "
            "the prompt, so it cannot be located as a segment; expected every message verbatim, "
            "once"
        )
    return tuple(spans[mark] for mark in marks)


def answer_opening(
    tokenizer: PreTrainedTokenizerBase, chat: ChatFormat, before_answer: Sequence[Turn], text: str
) -> str:
    """The text that the template writes between the generation prompt and an answer.

    `text` is what it writes for the messages before the answer, with the generation prompt.
    """
    try:
        whole = write(tokenizer, chat, [*before_answer, ("assistant", ANSWER)], generation=False)
    except UserError:  # not every template writes answers
        return ""
    opening, answer, _ = whole[len(text) :].partition(ANSWER)
    return opening if answer and whole.startswith(text) else ""


def write(
    tokenizer: PreTrainedTokenizerBase,
    chat: ChatFormat,
    turns: Sequence[Turn],
    *,
    generation: bool = True,
) -> str:
    """The given turns as the template writes them after the system prompt; errors: see `render`."""
    messages = [{"role": role, "content": content} for role, content in turns]
    return render(tokenizer, chat, messages, generation=generation)


def render(
    tokenizer: PreTrainedTokenizerBase,
    chat: ChatFormat,
    messages: Sequence[Mapping[str, Any]],
    *,
    generation: bool = True,
) -> str:
    """The given messages after the system prompt, as the chat template writes them.

    Raises:
        UserError: the template fails, takes too long, writes too much, or ignores an option.
    """
    system = [] if chat.system is None else [{"role": "system", "content": chat.system}]
    conversation: list[Any] = [*system, *messages]
    day = date.fromisoformat(chat.date)
    template = tokenizer.get_chat_template()
    try:
        if template in _STOPPED:  # several callers try a template again
            raise TimeoutError(_STOPPED[template])
        with limited(RENDER_SECONDS, RENDER_BYTES):
            _check_operations(template)
            text = tokenizer.apply_chat_template(
                conversation,
                chat_template=_dated(template, day),
                tokenize=False,
                add_generation_prompt=generation,
                # The templates of Llama 3.1 and 3.2 use this variable.
                date_string=day.strftime("%d %b %Y"),
                **_variables(tokenizer.name_or_path, template, chat),
            )
    except UserError:
        raise
    except Exception as error:  # a template can raise any error through Jinja
        roles = [message["role"] for message in conversation]
        if isinstance(error, TimeoutError | MemoryError):
            _STOPPED[template] = str(error)
        what = "a single user message" if roles == ["user"] else f"the roles {', '.join(roles)}"
        raise UserError(
            f"the chat template of {tokenizer.name_or_path} cannot write {what}: "
            f"{one_line(str(error) or type(error).__name__, 200)}"
        ) from error
    assert isinstance(text, str)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UserError(
            f"the chat template of {tokenizer.name_or_path} writes half a character (a lone "
            "surrogate), which no text can contain; repair the template"
        )
    written = len(text) - sum(len(message["content"]) for message in conversation)
    if written > FRAME_CHARACTERS:
        raise UserError(
            f"the chat template of {tokenizer.name_or_path} writes {written:,} characters around a "
            f"message; expected at most {FRAME_CHARACTERS:,}"
        )
    return text


def _variables(name: str, template: str, chat: ChatFormat) -> dict[str, Any]:
    variables: dict[str, Any] = dict.fromkeys(SWITCHES, chat.thinks)
    if not chat.thinks and re.search(r"reasoning_effort.*([\"'])none\1", template, re.DOTALL):
        variables["reasoning_effort"] = "none"
    for key, _ in chat.options:
        if not re.search(rf"\b{key}\b", template):
            raise UserError(f"the chat template of {name} has no option {key!r}; omit it")
    return variables | dict(chat.options)


@cache
def _check_operations(template: str) -> None:
    for _, kind, value in Environment(autoescape=True).lex(template):
        if (kind, value) == ("operator", "**"):
            raise ValueError("it raises a number to a power")
        if kind == "integer" and int(value.replace("_", "")[:20], 0) > LARGEST_NUMBER:
            raise ValueError(
                f"it contains the number {value[:20]}; expected at most {LARGEST_NUMBER:,}"
            )


@cache
def _dated(template: str, day: date) -> str:
    """The template, with the given day as today's date.

    The date function that transformers passes to templates reads the clock and cannot be replaced,
    but a macro of the same name takes precedence.
    """
    codes = {f"%-{code}": str(int(day.strftime(f"%{code}"))) for code in "dm"}
    codes |= {f"%{code}": day.strftime(f"%{code}") for code in "aAbBcdDeFhHIjmMpSTuUwWxXyY"}
    replaced = "".join(f"|replace({json.dumps(k)}, {json.dumps(v)})" for k, v in codes.items())
    macro = f"{{% macro strftime_now(format) %}}{{{{ format{replaced} }}}}{{% endmacro %}}"
    # Jinja drops the line break after a block.
    return f"{macro}\n{template}"
