"""One prompt as a user writes it: a text with segments in braces, and the answers to compare."""

import re
from collections.abc import Sequence
from itertools import count

from interp.errors import UserError, described, shortened
from interp.prompts.own.layout import unmarked

_HOW = 'put the parts whose effects matter in braces, such as "{It rains.} Is the street wet?"'

_BRACED = re.compile(r"\{(?:(?P<name>[a-z_][a-z0-9_]*):\s*)?(?P<text>[^{}]*)\}", re.IGNORECASE)


def marked(text: str) -> tuple[str, dict[str, tuple[int, int]]]:
    """A text with segments in braces, without the braces, and its segments.

    `{It rains.}` is a segment, and `{rule: If it rains, it is wet.}` is one with a name; others are
    named part1, part2 ... `<rule>...</rule>` marks a segment as in files of pairs.
    A UserError says what is wrong with braces, names or segments, or that there is none.
    """
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"the prompt is {described(text)}; expected a text: {_HOW}")
    numbers = count(1)

    def as_marks(match: re.Match[str]) -> str:
        name = match["name"] or f"part{next(numbers)}"
        return f"<{name}>{match['text'].strip()}</{name}>"

    outside = _BRACED.sub(lambda match: " " * len(match[0]), text)
    if stray := re.search(r"[{}]", outside):
        around = text[max(0, stray.start() - 25) : stray.start() + 25]
        raise UserError(
            f"the prompt has a stray {stray[0]!r} in {around!r}; mark each segment with one pair "
            "of braces, without nesting"
        )
    plain, segments = unmarked(_BRACED.sub(as_marks, text))
    if not segments:
        raise UserError(f"the prompt {shortened(text, 60)!r} marks no segment; {_HOW}")
    return plain, segments


def options_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """At least two different answers to compare: texts, or one with bars as in files of pairs."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UserError(f'options is {described(given)}; expected texts, such as "Paris|Rome"')
    names = tuple(name.strip() for text in texts for name in text.split("|"))
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        shown = shortened(", ".join(map(repr, texts)), 80) or "none"
        raise UserError(
            f"got the options {shown}; expected at least two different answers to compare, such as "
            '"Paris|Rome"'
        )
    return names
