"""Which segment and which role each token of a prompt has: one rule, for scores and for patches.

The smallest span that holds a token names it; of spans of one size, the one that is named last.
Segments are a prompt's own spans. Roles are finer: the prompt's roles and segments together, and
the last token, where the answer is read, by itself.
"""

from collections.abc import Mapping

from interp.choices import ALL, LAST, POOLED, RESERVED, TEMPLATE
from interp.errors import UserError
from interp.prompts.prompt import Span
from interp.reading.tokens import TokenizedPrompt


def token_segments(prompt: TokenizedPrompt) -> list[str]:
    """The segment of each token, "template" outside all segments.

    Raises:
        UserError: a segment has a reserved name.
    """
    return _innermost(prompt, prompt.segments)


def token_roles(prompt: TokenizedPrompt) -> list[str]:
    """The role of each token: its role, else its segment, but for the one that gives the answer.

    That is "last", the last token, or "pooled", the first of a classifier's prompt.

    Raises:
        UserError: a segment or role has a reserved name.
    """
    return with_answer(prompt, _innermost(prompt, {**prompt.segments, **prompt.roles}))


def with_answer(prompt: TokenizedPrompt, labels: list[str]) -> list[str]:
    """Labels of tokens, with a name of its own for the token at which the answer is read."""
    labels[prompt.answer_position] = POOLED if prompt.pooled else LAST
    return labels


def tokens_of(prompt: TokenizedPrompt, name: str) -> list[int]:
    """The tokens of a segment, else of a role, by position; none where the prompt has neither.

    "all" are those of the whole prompt.

    Raises:
        UserError: a segment or role has a reserved name.
    """
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
                f"tokens of every prompt; name it anything but {', '.join(RESERVED)}"
            )
    labels = [TEMPLATE] * len(prompt)
    for name in sorted(spans, key=lambda name: spans[name][0] - spans[name][1]):
        start, end = spans[name]
        labels[start:end] = [name] * (end - start)
    return labels
