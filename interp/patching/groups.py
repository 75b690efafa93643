"""The groups of tokens that are patched together."""

from collections.abc import Iterator
from dataclasses import dataclass

from interp.choices import ALL, Granularity
from interp.reading.tokens import TokenizedPrompt, token_roles, token_segments, with_answer


@dataclass(frozen=True, slots=True)
class Group:
    """Tokens that are patched together."""

    role: str
    positions: tuple[int, ...]
    alone: bool = False
    """Whether it is one token that is patched for itself."""


def groups(prompt: TokenizedPrompt, granularity: Granularity) -> Iterator[Group]:
    """The groups of tokens of a prompt, in the order of their first tokens.

    By role or by segment; the token at which the answer is read is a group of its own either
    way, since patching it late is patching the answer.

    Raises:
        UserError: a segment or role with a reserved name.
    """
    if granularity == "position":
        for position, role in enumerate(token_roles(prompt)):
            yield Group(role, (position,), alone=True)
    elif granularity == "all":
        yield Group(ALL, tuple(range(len(prompt))))
    else:
        by_role = granularity == "role"
        labels = token_roles(prompt) if by_role else with_answer(prompt, token_segments(prompt))
        for label in dict.fromkeys(labels):
            positions = tuple(index for index, role in enumerate(labels) if role == label)
            yield Group(label, positions)
