"""Roles: what each token of a prompt is, and the groups of tokens that are patched together."""

from collections.abc import Iterator
from dataclasses import dataclass

from interp.choices import GRANULARITIES
from interp.errors import UserError
from interp.reading.tokens import TokenizedPrompt

LAST = "last"
"""The role of the last token, at which the answer is read."""

POOLED = "pooled"
"""The role of the first token of a classifier's prompt, at which the answer is read."""

TEMPLATE = "template"
"""The role of tokens outside all segments: the chat template and the words between segments."""

ALL = "all"
"""The role of all tokens together."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tokens that are patched together."""

    role: str
    positions: tuple[int, ...]
    alone: bool = False
    """Whether it is one token that is patched for itself."""


def token_roles(prompt: TokenizedPrompt) -> list[str]:
    """The role of each token: the smallest role or segment that holds it."""
    spans = {**prompt.segments, **prompt.roles}
    names = sorted(spans, key=lambda name: spans[name][0] - spans[name][1])
    return _labels(prompt, names, spans)


def token_segments(prompt: TokenizedPrompt) -> list[str]:
    """The segment of each token."""
    return _labels(prompt, list(prompt.segments)[::-1], dict(prompt.segments))


def groups(prompt: TokenizedPrompt, granularity: str) -> Iterator[Group]:
    """The groups of tokens of a prompt, in the order of their first tokens.

    Raises:
        UserError: an unknown granularity.
    """
    if granularity not in GRANULARITIES:
        raise UserError(
            f"unknown granularity {granularity!r}; expected one of {', '.join(GRANULARITIES)}"
        )
    if granularity == "position":
        for position, role in enumerate(token_roles(prompt)):
            yield Group(role, (position,), alone=True)
    elif granularity == "all":
        yield Group(ALL, tuple(range(len(prompt))))
    else:
        labels = token_roles(prompt) if granularity == "role" else token_segments(prompt)
        for label in dict.fromkeys(labels):
            positions = tuple(index for index, role in enumerate(labels) if role == label)
            yield Group(label, positions)


def _labels(
    prompt: TokenizedPrompt, names: list[str], spans: dict[str, tuple[int, int]]
) -> list[str]:
    """For each token the last of `names` whose span holds it; names run from large to small."""
    labels = [TEMPLATE] * len(prompt)
    for name in names:
        start, end = spans[name]
        labels[start:end] = [name] * (end - start)
    labels[prompt.answer_position] = POOLED if prompt.pooled else LAST
    return labels
