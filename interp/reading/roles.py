"""Which segment and which role each token of a prompt has: one rule, for scores and for patches.

The smallest span that holds a token names it; of spans of one size, the one that is named last.
Segments are a prompt's own spans. Roles are finer: the prompt's roles and segments together, and
the last token, where the answer is read, by itself.
"""

from collections.abc import Mapping

from interp.choices import ALL, LAST, TEMPLATE
from interp.errors import UserError
from interp.prompts.prompt import Span
from interp.reading.tokens import TokenizedPrompt

_RESERVED = (TEMPLATE, LAST, ALL)


def token_segments(prompt: TokenizedPrompt) -> list[str]:
    """The segment of each token, "template" outside all segments.

    Raises:
        UserError: a segment has a reserved name.
    """
    return _innermost(prompt, prompt.segments)


def token_roles(prompt: TokenizedPrompt) -> list[str]:
    """The role of each token: "last" for the last one, else its role, else its segment.

    Raises:
        UserError: a segment or role has a reserved name.
    """
    roles = _innermost(prompt, {**prompt.segments, **prompt.roles})
    roles[-1] = LAST
    return roles


def _innermost(prompt: TokenizedPrompt, spans: Mapping[str, Span]) -> list[str]:
    for name in _RESERVED:
        if name in spans:
            raise UserError(
                f"prompt {prompt.prompt.id} has a segment or role {name!r}, a name that stands for "
                f"tokens of every prompt; name it anything but {', '.join(_RESERVED)}"
            )
    labels = [TEMPLATE] * len(prompt)
    for name in sorted(spans, key=lambda name: spans[name][0] - spans[name][1]):
        start, end = spans[name]
        labels[start:end] = [name] * (end - start)
    return labels
