"""Text with marked segments, such as "<premise1>It rains.</premise1> Is it wet?"."""

import re

from interp.choices import RESERVED
from interp.errors import UserError, shortened
from interp.prompts.prompt import Span, compose

NAME = r"[A-Za-z][A-Za-z0-9_]*"
"""Allowed names of segments."""

_SEGMENT = re.compile(rf"<({NAME})>(.*?)</\1>", re.DOTALL)
_MARK = re.compile(rf"</?{NAME}>")


def unmarked(text: str) -> tuple[str, dict[str, Span]]:
    """The text without its marks, and the span of each segment.

    Raises:
        UserError: a mark is not closed, or a segment is empty, is marked twice, or has a reserved
            name.
    """
    parts: list[tuple[str | None, str]] = []
    at = 0
    for found in _SEGMENT.finditer(text):
        parts += [(None, text[at : found.start()]), (found[1], found[2])]
        at = found.end()
    parts.append((None, text[at:]))
    names = [name for name, _ in parts if name is not None]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UserError(f"the text marks {shortened(repeated[0], 60)} twice; mark a segment once")
    for name, part in parts:
        if name in RESERVED:
            raise UserError(
                f"the text marks {name}, which cannot be the name of a segment; expected a name "
                f"other than {', '.join(RESERVED)}"
            )
        if name is not None and not part:
            raise UserError(f"the text marks {shortened(name, 60)} around nothing; mark some text")
        if mark := _MARK.search(part):
            raise UserError(
                f"the text has a stray {shortened(mark[0], 60)}; mark a segment as "
                "<name>...</name>, and none within another"
            )
    return compose(parts)
