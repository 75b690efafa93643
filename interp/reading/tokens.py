"""Prompts as a model reads them: chat text, tokens, the segment of each token, and batches."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from interp.choices import ALL, LAST, POOLED, RESERVED, TEMPLATE
from interp.errors import UserError, shortened
from interp.models.cache import is_long
from interp.models.chat_template import write
from interp.models.kinds import CAUSAL, CLASSIFIER
from interp.models.model import Model
from interp.prompts.plain_text import gap
from interp.prompts.prompt import ALONE, ANSWER_PREFIX, Prompt
from interp.prompts.thought import Span


@dataclass(frozen=True, slots=True)
class ChatText:
    """The text that a model reads for one prompt."""

    text: str
    message_start: int
    """Start of the prompt's message in `text`, which shifts the prompt's spans."""
    templated: bool
    """Whether a chat template wrote the text, which then already includes the special tokens."""
    answer_opening: str = ""
    """White space that the template writes between the text and the answer; usually empty."""
    thought_start: int = 0
    """Position in `text` at which the prompt's thought starts or would start."""
    around: Mapping[str, Span] = field(default_factory=dict, hash=False)
    """Spans in `text` of the segments outside the prompt's own text: system_prompt, shot1, shot2
    ..., answer_prefix (`Messages.segments`)."""


def write_chat(prompt: Prompt, model: Model) -> ChatText:
    """The prompt's messages, followed by the generation prompt (Chan et al. 2024, Section 4.2).

    The prompt's text is the user's last message, after the earlier turns of `Prompt.messages` and
    before its answer prefix. A system prompt is written if the prompt or `Model.chat` provides one;
    some templates, such as those of Qwen2.5 and Llama 3.1, insert their own. If there is no
    template, or `Model.chat` turns it off, the messages become plain text, with an empty line after
    each question and its answer. A single message is unchanged. Only causal language models read
    messages.

    Raises:
        UserError: the template fails, or changes the message, so that its spans would be wrong;
            prompt and model each have a system prompt; or the model cannot read messages.
    """
    _check_messages(prompt, model)
    messages = prompt.messages
    frame = model.frame_behind(messages.turns)
    text = frame.before + prompt.text + frame.after
    if frame.templated:
        written = write(model.tokenizer, model.chat, [*messages.turns, ("user", prompt.text)])
        if written != text:
            raise UserError(_changed(prompt, model, written))
    text += frame.direct
    start, opening, thought_start = len(frame.before), frame.answer_opening, len(text)
    around = messages.segments(frame.turns)
    if prompt.thought is not None:
        _check_thought(prompt, model)
        text, opening = text + prompt.thought.written, ""
    elif model.chat.thinks:  # up to the beginning of the thought
        return ChatText(text, start, frame.templated, thought_start=thought_start, around=around)
    if messages.answer_prefix:
        if not frame.templated:
            opening = gap(text)
        text, opening = text + opening + messages.answer_prefix, ""
        around[ANSWER_PREFIX] = len(text) - len(messages.answer_prefix), len(text)
    return ChatText(text, start, frame.templated, opening, thought_start, around)


def _changed(prompt: Prompt, model: Model, written: str) -> str:
    """Why a prompt's segments cannot be located in what the template wrote."""
    inner = prompt.text.strip()
    if inner != prompt.text and prompt.text not in written and inner in written:
        return (
            f"prompt {prompt.id} begins or ends with white space, which the chat template of "
            f"{model.name} removes; remove it from the data, so that the model reads the prompt as "
            "it stands there"
        )
    return (
        f"the chat template of {model.name} changes the message of prompt {prompt.id}, "
        "or writes different text around it than around other messages, so its segments "
        "cannot be located; expected the message verbatim"
    )


def _check_thought(prompt: Prompt, model: Model) -> None:
    assert prompt.thought is not None
    if not model.chat.thinks:
        raise UserError(
            f"prompt {prompt.id} has a thought, but {model.name} reads answers without one; load "
            "the model with thinking on"
        )
    if not prompt.thought.ended:
        raise UserError(
            f"the thought of {model.name} on prompt {prompt.id} has no end, so no answer follows "
            "it; store longer thoughts (generate --max-new-tokens), or end them with --force-end"
        )
    if taken := prompt.segments.keys() & prompt.thought.segments.keys():
        raise UserError(
            f"prompt {prompt.id} has a segment {min(taken)!r}, the name of a sentence of its "
            "thought; give the segment another name"
        )


def _check_messages(prompt: Prompt, model: Model) -> None:
    if model.kind is not CAUSAL and (prompt.messages != ALONE or model.chat.system is not None):
        raise UserError(
            f"{model.name} is a {model.kind.name}, which reads only the text of prompt "
            f"{prompt.id}; omit system prompt, demonstrations and answer prefix"
        )
    if prompt.messages.system is not None and model.chat.system is not None:
        raise UserError(
            f"prompt {prompt.id} has its own system message, but there is also a system prompt "
            "for all prompts; expected only one of the two"
        )


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A prompt as the model reads it."""

    prompt: Prompt
    chat: ChatText
    token_ids: tuple[int, ...]
    segments: Mapping[str, Span]
    """Half-open ranges of tokens, one for each segment of the prompt and of the messages around it.
    """
    roles: Mapping[str, Span] = field(default_factory=dict)
    """Half-open ranges of tokens, one for each role of the prompt."""
    pooled: bool = False
    """Whether the answer is read at the first token, as in a classifier whose head pools it."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def answer_position(self) -> int:
        """The token at which the answer is read."""
        return 0 if self.pooled else len(self) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Prompts of similar length, padded to one width.

    Prompts of causal models are padded on the left, so all prompts end at the last position.
    """

    prompts: tuple[TokenizedPrompt, ...]
    token_ids: Int[Tensor, "batch token"]
    attention_mask: Int[Tensor, "batch token"]
    """1 on real tokens, 0 on padding."""
    position_ids: Int[Tensor, "batch token"]
    """Positions counted from each prompt's first real token, regardless of padding. Causal models
    receive these positions; other models number positions themselves."""
    padding_side: str = field(default="left", kw_only=True)

    def unpadded(self, row: int) -> slice:
        """The positions of one prompt's tokens."""
        width, length = self.token_ids.shape[1], len(self.prompts[row])
        return slice(width - length, width) if self.padding_side == "left" else slice(length)


def tokenize(model: Model, prompts: Sequence[Prompt]) -> list[TokenizedPrompt]:
    """Tokenize prompts through the model's chat template.

    Special tokens are added only if no template wrote them. For a causal model, they are added only
    before the text, so that the answer follows the prompt itself and not an end token.

    Raises:
        UserError: a prompt is longer than the model's context, a segment has no tokens, or the
            tokenizer uses several token types.
    """
    tokenized = tokenize_whole(model, prompts)
    longest = max(tokenized, key=len, default=None)
    limit = model.context_length
    if limit is not None and longest is not None and len(longest) > limit:
        raise UserError(
            f"prompt {longest.prompt.id} has {len(longest)} tokens, but {model.name} reads at "
            f"most {limit}; shorten the prompt or use a model with a longer context"
        )
    return tokenized


def tokenize_whole(model: Model, prompts: Sequence[Prompt]) -> list[TokenizedPrompt]:
    """Like `tokenize`, but prompts may be longer than the model's context."""
    if not prompts:
        return []
    chats = [write_chat(prompt, model) for prompt in prompts]
    encoded = model.tokenizer(
        [chat.text for chat in chats],
        add_special_tokens=not chats[0].templated,
        return_attention_mask=False,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    if any(any(types) for types in encoded.get("token_type_ids", ())):
        raise UserError(
            f"the tokenizer of {model.name} ({model.hf.config.model_type}) uses several token "
            "types for one prompt, which is not supported; use a model such as BERT or RoBERTa"
        )
    columns = (encoded[name] for name in ("input_ids", "special_tokens_mask", "offset_mapping"))
    return [
        TokenizedPrompt(
            prompt,
            chat,
            _without_added_end(ids, added) if model.kind is CAUSAL else tuple(ids),
            token_spans(prompt, chat, _placed_segments(prompt, chat), offsets),
            token_spans(prompt, chat, _placed_roles(prompt, chat), offsets),
            pooled=model.kind is CLASSIFIER,
        )
        for prompt, chat, ids, added, offsets in zip(prompts, chats, *columns, strict=True)
    ]


def _without_added_end(ids: Sequence[int], added: Sequence[int]) -> tuple[int, ...]:
    """The tokens, without special tokens at the end; `added` is 1 for special tokens."""
    end = len(ids)
    while end and added[end - 1]:
        end -= 1
    return tuple(ids[:end])


def _placed_segments(prompt: Prompt, chat: ChatText) -> dict[str, Span]:
    """The span of each segment in the chat text, in the order of the text."""
    sentences = prompt.thought.segments if prompt.thought else {}
    segments = _placed(chat, prompt.segments, sentences)
    if taken := chat.around.keys() & (segments.keys() | prompt.roles.keys()):
        raise UserError(
            f"prompt {prompt.id} has a segment or role {min(taken)!r}, the name of a message "
            "around it; give it another name"
        )
    before = {name: span for name, span in chat.around.items() if span[0] < chat.message_start}
    return {**before, **segments, **chat.around}


def _placed_roles(prompt: Prompt, chat: ChatText) -> dict[str, Span]:
    return _placed(chat, prompt.roles, prompt.thought.roles if prompt.thought else {})


def _placed(
    chat: ChatText, in_text: Mapping[str, Span], in_thought: Mapping[str, Span]
) -> dict[str, Span]:
    """Spans in the prompt's text and thought, shifted to their positions in the chat text."""
    return {
        name: (start + shift, end + shift)
        for spans, shift in ((in_text, chat.message_start), (in_thought, chat.thought_start))
        for name, (start, end) in spans.items()
    }


def token_spans(
    prompt: Prompt, chat: ChatText, spans: Mapping[str, Span], offsets: Sequence[Span]
) -> dict[str, Span]:
    """For each named span, the range of tokens that contain any of its characters.

    A token that extends beyond the span, such as a full stop with a line break, belongs to it;
    special tokens, which have no characters, belong to no span.
    """
    # Tokens outside these bounds are none of a span's; long thoughts have too many to try all.
    ends = [*accumulate((b if a < b else -1 for a, b in offsets), max)]
    starts = [*accumulate((a if a < b else math.inf for a, b in reversed(offsets)), min)][::-1]
    ranges: dict[str, Span] = {}
    for name, (start, end) in spans.items():
        near = range(bisect_right(ends, start), bisect_left(starts, end))
        inside = [i for i in near if max(offsets[i][0], start) < min(offsets[i][1], end)]
        if not inside or start == end:
            raise UserError(
                f"segment {name!r} of prompt {prompt.id} ({chat.text[start:end]!r}) has no "
                "tokens; its span must cover some text"
            )
        ranges[name] = inside[0], inside[-1] + 1
    return ranges


def batches(
    model: Model, prompts: Sequence[TokenizedPrompt], *, batch_tokens: int, new_tokens: int = 0
) -> Iterator[tuple[list[int], Batch]]:
    """Group prompts by length; the token budget covers padding and `new_tokens` per prompt.

    Yields each batch with the indices of its prompts, starting with the shortest prompts. A prompt
    longer than the budget forms a batch by itself. No batch contains prompts for which a model uses
    different rotary frequencies, now or after some of the new tokens.
    """
    by_length = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    chunks: list[list[int]] = []
    for index in by_length:
        length = len(prompts[index])
        chunk = chunks[-1] if chunks else []
        fits = (len(chunk) + 1) * (length + new_tokens) <= batch_tokens
        if chunk and fits and _may_share(model, len(prompts[chunk[0]]), length, new_tokens):
            chunk.append(index)
        else:
            chunks.append([index])
    for chunk in chunks:
        yield chunk, pad(model, [prompts[index] for index in chunk])


def _may_share(model: Model, shorter: int, longer: int, new_tokens: int) -> bool:
    if shorter == longer:
        return True
    return model.allows_padding and is_long(model, shorter) == is_long(model, longer + new_tokens)


def safe_width(width: int, device: torch.device) -> int:
    """A safe width for a batch on a device: `width` or one more column.

    On CUDA, PyTorch's memory-efficient attention gives wrong results for masked batches whose width
    is 1 modulo 32 if all query heads share one key head (pytorch/pytorch#191937; seen on an H200
    with torch 2.11). Batches of such a width are therefore padded by one more column.
    """
    return width + (device.type == "cuda" and width % 32 == 1)


def pad(model: Model, prompts: Sequence[TokenizedPrompt]) -> Batch:
    """A batch on the model's device. Padding is masked and never read."""
    width = safe_width(max(len(prompt) for prompt in prompts), model.device)
    left = model.padding_side == "left"
    token_ids = np.full((len(prompts), width), model.tokenizer.pad_token_id or 0)
    mask = np.zeros_like(token_ids)
    for row, prompt in enumerate(prompts):
        columns = slice(width - len(prompt), width) if left else slice(len(prompt))
        token_ids[row, columns] = prompt.token_ids
        mask[row, columns] = 1
    attention_mask = torch.from_numpy(mask).to(model.device)
    return Batch(
        prompts=tuple(prompts),
        token_ids=torch.from_numpy(token_ids).to(model.device),
        attention_mask=attention_mask,
        position_ids=(attention_mask.cumsum(1) - 1).clamp(min=0),
        padding_side=model.padding_side,
    )


def token_segments(prompt: TokenizedPrompt) -> list[str]:
    """The segment of each token; "template" outside all segments.

    A segment with a reserved name, or without a token of its own, raises a UserError.
    """
    return _innermost(prompt, prompt.segments)


def token_roles(prompt: TokenizedPrompt) -> list[str]:
    """The role of each token or, if it has none, its segment; errors are those of `token_segments`.

    The token at which the answer is read is "last" or, for a classifier, "pooled".
    """
    return with_answer(prompt, _innermost(prompt, {**prompt.segments, **prompt.roles}))


def with_answer(prompt: TokenizedPrompt, labels: list[str]) -> list[str]:
    """The labels, with "last" or "pooled" for the token at which the answer is read."""
    labels[prompt.answer_position] = POOLED if prompt.pooled else LAST
    return labels


def tokens_of(prompt: TokenizedPrompt, name: str) -> list[int]:
    """Positions of a segment's tokens (`token_segments`) or else a role's; "all": the prompt's."""
    if name == ALL:
        return list(range(len(prompt)))
    segments = token_segments(prompt)
    labels = segments if name in segments else token_roles(prompt)
    return [position for position, label in enumerate(labels) if label == name]


def _innermost(prompt: TokenizedPrompt, spans: Mapping[str, Span]) -> list[str]:
    for name in RESERVED:
        if name in spans:
            raise UserError(
                f"prompt {prompt.prompt.id} has a segment or role {name!r}, a name reserved for "
                f"tokens of every prompt; use a name other than {', '.join(RESERVED)}"
            )
    labels = [TEMPLATE] * len(prompt)
    for name in sorted(spans, key=lambda name: spans[name][0] - spans[name][1]):
        start, end = spans[name]
        labels[start:end] = [name] * (end - start)
    for name in spans.keys() - set(labels):
        _check_apart(prompt, spans, name)
    return labels


def _check_apart(prompt: TokenizedPrompt, spans: Mapping[str, Span], name: str) -> None:
    """Reject a segment all of whose tokens hold other segments' characters, so none is its own.

    A segment that consists of others, such as a segment with a single role, is none the less whole.
    """
    bare, chat = prompt.prompt, prompt.chat
    placed = _placed_segments(bare, chat) | _placed_roles(bare, chat)
    (start, end), (first, last) = spans[name], placed[name]
    for other in spans:
        shares = spans[other][0] < end and start < spans[other][1]
        if shares and (placed[other][1] <= first or last <= placed[other][0]):
            token = prompt.chat.text[min(first, placed[other][0]) : max(last, placed[other][1])]
            raise UserError(
                f"{name} and {other} of prompt {bare.id} share a token ({shortened(token, 60)!r}), "
                f"and {name} has no other, so the two cannot be told apart; put white space "
                "between them, or make them one segment"
            )
