"""What the columns of a table of pairs mean, and the prompts made from a row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from interp.choices import RESERVED
from interp.errors import UserError, shortened
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt, compose
from interp.prompts.thought import Span

PAIR = "pair"
"""The column, and the factor, that name the groups."""

REQUIRED = (PAIR, "side", "gold")
OPTIONS, TEXT = "options", "text"
FACTOR = "factor_"
"""Prefix of columns that are not part of the prompt, if columns are its segments."""

PHRASING = "phrasing"
"""The factor that numbers the templates, if there are several."""

YES_OR_NO = "Yes|No"
"""The options of a table without a column of options."""

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_SEGMENT = re.compile(rf"<({_NAME})>(.*?)</\1>", re.DOTALL)
_MARK = re.compile(rf"</?{_NAME}>")

Cells = Mapping[str, str]
"""Text of each column; empty cells are omitted."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaning of a table's columns."""

    segments: tuple[str, ...]
    """Columns that are segments, in order; none if the text is marked."""
    factors: Mapping[str, str]
    """Factor of each column."""
    templates: tuple[str, ...]
    """Templates that compose segments, each a phrasing; none for one segment per line."""

    @classmethod
    def of(cls, columns: Sequence[str], templates: Sequence[str] = ()) -> "Layout":
        """The layout of a table with the given columns.

        Raises:
            UserError: a column is missing, or cannot be a segment; a template names no column.
        """
        if missing := [name for name in REQUIRED if name not in columns]:
            raise UserError(
                f"the columns {', '.join(missing)} are missing; expected {', '.join(REQUIRED)} and "
                f"{TEXT}, or a column for each segment"
            )
        others = [name for name in columns if name not in (*REQUIRED, OPTIONS, TEXT)]
        if TEXT in columns:
            if templates:
                raise UserError(
                    f"a template composes the columns of segments, but there is a column {TEXT}; "
                    "leave one of them out"
                )
            return cls((), _factors(others), ())
        named = _named(templates, others)
        plain = [name for name in others if not name.startswith(FACTOR)]
        segments = [name for name in others if name in named] if templates else plain
        _check_segments(segments)
        rest = [name for name in others if name not in segments]
        return cls(tuple(segments), _factors(rest), tuple(templates))

    def prompts(self, cells: Cells) -> Iterator[Prompt]:
        """The prompts of a row, one for each phrasing.

        Raises:
            UserError: a cell is empty or cannot be understood.
        """
        for name in REQUIRED:
            if name not in cells:
                raise UserError(f"{name} is empty; expected a text")
        own = {factor: cells.get(column, "") for column, factor in self.factors.items()}
        # Shared by all phrasings, since tests do not count these as separate pairs.
        factors = {PAIR: cells[PAIR], **own}
        answer = _answer(cells.get(OPTIONS, YES_OR_NO), cells["gold"])
        several = len(self.templates) > 1
        for number, (text, segments) in enumerate(self._texts(cells), start=1):
            pair_id = f"{cells[PAIR]}/{number}" if several else cells[PAIR]
            yield Prompt(
                id=f"{pair_id}/{cells['side']}",
                text=text,
                segments=segments,
                answer=answer,
                pair_id=pair_id,
                side=cells["side"],
                factors=factors | {PHRASING: str(number)} if several else factors,
            )

    def _texts(self, cells: Cells) -> Iterator[tuple[str, dict[str, Span]]]:
        if not self.segments:
            if TEXT not in cells:
                raise UserError(f"{TEXT} is empty; expected the text of the prompt")
            yield unmarked(cells[TEXT])
        elif self.templates:
            yield from (compose(list(_filled(template, cells))) for template in self.templates)
        else:
            parts: list[tuple[str | None, str]] = []
            for name in self.segments:
                if name in cells:
                    parts += [(None, "\n"), (name, cells[name])]
            if not parts:
                raise UserError(f"{', '.join(self.segments)} are empty; expected some text")
            yield compose(parts[1:])


def _factors(columns: Sequence[str]) -> dict[str, str]:
    factors: dict[str, str] = {}
    for name in columns:
        factor = name.removeprefix(FACTOR)
        if factor in (PAIR, *factors.values()):
            raise UserError(
                f"the columns {shortened(factor, 60)} and {shortened(FACTOR + factor, 60)} are the "
                "same factor; rename one of them"
            )
        factors[name] = factor
    return factors


def _named(templates: Sequence[str], columns: Sequence[str]) -> set[str]:
    named: set[str] = set()
    for template in templates:
        try:
            parsed = [field for field in Formatter().parse(template) if field[1] is not None]
        except ValueError as error:
            raise UserError(
                f"the template {shortened(template)!r} is not valid: {error}"
            ) from error
        for _, name, form, conversion in parsed:
            if form or conversion:
                raise UserError(
                    f"the template {shortened(template)!r} formats {name}; expected just "
                    f"{{{name}}}, since a segment is written as it stands"
                )
        fields = {str(name) for _, name, _, _ in parsed}
        if unknown := sorted(fields - set(columns)):
            raise UserError(
                f"the template {shortened(template)!r} names {shortened(unknown[0], 60)!r}; "
                f"expected some of the columns {', '.join(columns) or '(there are none)'}"
            )
        named |= fields
    return named


def _check_segments(names: Sequence[str]) -> None:
    if not names:
        raise UserError(
            f"there is nothing to ask: expected a column {TEXT}, or a column for each segment, "
            "such as premise1, premise2 and question"
        )
    for name in names:
        if not re.fullmatch(_NAME, name) or name in RESERVED:
            raise UserError(
                f"the column {shortened(name, 60)!r} cannot be a segment: expected a name of "
                f"letters, digits and underscores, other than {', '.join(RESERVED)}"
            )


def _filled(template: str, cells: Cells) -> Iterator[tuple[str | None, str]]:
    """The parts of a template; a repeated segment belongs to no segment at its later places."""
    seen: set[str] = set()
    for before, name, _, _ in Formatter().parse(template):
        yield None, before
        if name is not None:
            if name not in cells:
                raise UserError(f"{name} is empty; the template expects a text")
            yield None if name in seen else name, cells[name]
            seen.add(name)


def _answer(options: str, gold: str) -> Choice:
    """The choice described by two cells: "Yes/yes|No/no", and the name or a form of an option."""
    found = []
    for cell in options.split("|"):
        forms = tuple(dict.fromkeys(form.strip() for form in cell.split("/")))
        if not all(forms):
            raise UserError(
                f"{OPTIONS} is {shortened(repr(options), 80)}; expected two or more, separated by "
                '"|", each with its forms separated by "/", such as "Yes/yes|No/no"'
            )
        found.append(AnswerOption(forms[0], forms))
    correct = [option.name for option in found if gold in option.forms]
    if len(correct) != 1:
        known = ", ".join(option.name for option in found)
        raise UserError(f"gold is {shortened(repr(gold), 60)}; expected one of {known}")
    names = tuple(option.name for option in found)
    contrast = (names[0], names[1]) if len(names) == 2 else None
    return Choice(tuple(found), correct[0], contrast)


def unmarked(text: str) -> tuple[str, dict[str, Span]]:
    """A text such as "<premise1>It rains.</premise1> Is it wet?" without marks, and its segments.

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
