"""What the columns in a table of pairs mean, and the prompts built from a row."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from interp.choices import RESERVED
from interp.errors import UserError, nearest, shortened
from interp.lookalikes import as_seen, is_blank, lookalike
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import (
    ANSWER_PREFIX,
    SYSTEM_PROMPT,
    Demonstration,
    Messages,
    Prompt,
    compose,
)
from interp.prompts.prompt_set import TAKEN
from interp.prompts.thought import Span

PAIR = "pair"
"""The name of the column that identifies the groups, and of the factor that is the unit of tests:
the cluster, or else the group."""

REQUIRED = (PAIR, "side", "gold")
OPTIONS, CONTRAST, TEXT = "options", "contrast", "text"
FACTS = ("fact", TEXT, "answer")
"""The columns of a table of facts: an id, the sentence to complete, and its completion."""
CLUSTER = "cluster"
"""The column with a name that dependent pairs share, which are then one unit of tests."""

FACTOR = "factor_"
"""Prefix of columns that are not part of the prompt, in a table with segments as columns."""

SEGMENTS = (
    "instruction", "context", "passage", "story", "theory", "rule", "fact", "premise", "statement",
    "claim", "hypothesis", "conclusion", "question",
)  # fmt: skip
"""Columns that are segments even without a template; their names may be plural or numbered."""

PHRASING = "phrasing"
"""The factor for the template's number, if there are several templates."""

FORMS = "//"
"""What separates the forms of an option; a single slash does so only between forms that differ in
their capitals alone, since it is a part of options such as n/a, 1/2 and and/or."""

ANSWERED = "_answer"
"""Ending of the column with the answer of a demonstration."""

_SHOT = re.compile(r"shot[1-9][0-9]{0,3}")
_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_SEGMENT = re.compile(rf"<({_NAME})>(.*?)</\1>", re.DOTALL)
_MARK = re.compile(rf"</?{_NAME}>")
_KNOWN = re.compile(rf"({'|'.join(SEGMENTS)})(s|_?\d+)?", re.IGNORECASE)
NAMELESS = re.compile(r"|Unnamed: \d+(\.\d+)?|__index_level_\d+__")
"""Names that pandas gives to an index, or to a column that has none."""

Cells = Mapping[str, str]
"""Text of each column."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaning of a table's columns."""

    segments: tuple[str, ...]
    """Columns that are segments, in order; empty if the text is marked."""
    factors: Mapping[str, str]
    """The factor of each column that is not part of the prompt."""
    templates: tuple[str, ...]
    """Templates that compose segments, one per phrasing; if empty, each segment is one line."""
    around: tuple[str, ...] = ()
    """Columns of the messages around the text: system_prompt, shot1, shot1_answer ...,
    answer_prefix."""

    @classmethod
    def of(cls, columns: Sequence[str], templates: Sequence[str] = ()) -> "Layout":
        """The layout of a table with these columns (UserError: one is missing, or unknown)."""
        known = (*REQUIRED, OPTIONS, CONTRAST, CLUSTER, TEXT)
        check_names(columns, known)
        if missing := [name for name in REQUIRED if name not in columns]:
            raise UserError(
                f"the columns {', '.join(missing)} are missing; expected {', '.join(REQUIRED)} and "
                f"{TEXT}, or a column for each segment. If one is the index of a data frame, use "
                "reset_index()"
            )
        if templates and TEXT in columns:
            raise UserError(
                "a template composes the columns of segments, but the table has a column "
                f"{TEXT}; omit the template or the column"
            )
        others = [name for name in columns if name not in known]
        named = _named(templates, others)
        around = _around([name for name in others if name not in named])
        others = [name for name in others if name not in around]
        plain = [name for name in others if not name.startswith(FACTOR)]
        segments = [name for name in others if name in named] if templates else plain
        if TEXT in columns:
            segments = []
        else:
            _check_segments(segments, templated=bool(templates))
        chosen = set(segments)
        factors = factors_of([name for name in others if name not in chosen])
        clash = [column for column, factor in factors.items() if factor == PHRASING]
        if clash and len(templates) > 1:
            raise UserError(
                f"the column {clash[0]} and the number of the template would be the same factor, "
                f"{PHRASING}; rename the column, or use one template"
            )
        return cls(tuple(segments), factors, tuple(templates), around)

    def prompts(self, cells: Cells) -> Iterator[Prompt]:
        """The prompts of a row, one for each phrasing (UserError: a cell is invalid)."""
        cells = {**cells, **{name: cells[name].strip() for name in REQUIRED}}
        column_factors = {factor: cells[column].strip() for column, factor in self.factors.items()}
        # All phrasings share this id, since tests do not count them as separate pairs.
        factors = {PAIR: cells.get(CLUSTER, cells[PAIR]).strip(), **column_factors}
        answer = _answer(cells.get(OPTIONS, "Yes|No"), cells["gold"], cells.get(CONTRAST))
        messages = self._messages(cells)
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
                messages=messages,
            )

    def _messages(self, cells: Cells) -> Messages:
        texts = {name: cells[name].strip() for name in self.around}
        shown = [name for name in self.around if _SHOT.fullmatch(name)]
        return Messages(
            texts.get(SYSTEM_PROMPT),
            tuple(Demonstration(texts[name], texts[name + ANSWERED]) for name in shown),
            texts.get(ANSWER_PREFIX, ""),
        )

    def _texts(self, cells: Cells) -> Iterator[tuple[str, dict[str, Span]]]:
        if not self.segments:
            yield unmarked(cells[TEXT])
            return
        lines = "\n".join(f"{{{name}}}" for name in self.segments)
        for template in self.templates or [lines]:
            yield compose(list(_filled(template, cells)))


def _around(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of messages around the text; demonstrations in the order of their numbers."""
    shots = [name for name in columns if _SHOT.fullmatch(name.removesuffix(ANSWERED))]
    count = max((int(name.removesuffix(ANSWERED)[4:]) for name in shots), default=0)
    numbered = range(1, min(count, len(shots)) + 1)
    expected = [f"shot{n}{end}" for n in numbered for end in ("", ANSWERED)]
    if missing := [name for name in expected if name not in shots]:
        raise UserError(
            f"the column {missing[0]} is missing beside {shortened(', '.join(shots), 60)}; "
            f"demonstrations are columns shot1 and shot1{ANSWERED}, shot2 and shot2{ANSWERED}, ..."
        )
    return (*expected, *(name for name in columns if name in (SYSTEM_PROMPT, ANSWER_PREFIX)))


def check_names(columns: Sequence[str], known: Sequence[str]) -> None:
    """Reject columns without a name, and those that look like a known one, but would be factors."""
    seen = {as_seen(name): name for name in known}
    for name in columns:
        if NAMELESS.fullmatch(name.removeprefix(FACTOR).strip()):
            raise UserError(
                f"the column {name!r} is the index of a data frame, or has no name. Write the file "
                "without the index: to_csv(..., index=False), to_parquet(..., index=False); name "
                "any other column, or remove it"
            )
        nearly = seen.get(as_seen(name), name)
        if nearly != name:
            why = lookalike(name, [nearly]) or "expected lower case"
            raise UserError(
                f"the column {shortened(name, 60)!r} is not called {nearly}: {why}; rename it"
            )


def factors_of(columns: Sequence[str]) -> dict[str, str]:
    """The factor of each column that is not part of a prompt, which no other column may name."""
    factors: dict[str, str] = {}
    taken = {PAIR}
    for name in columns:
        factor = name.removeprefix(FACTOR)
        if factor in taken:
            raise UserError(
                f"the columns {shortened(factor, 60)} and {shortened(FACTOR + factor, 60)} are the "
                "same factor; rename one of them"
            )
        if factor in TAKEN:
            raise UserError(
                f"the column {shortened(name, 60)} would be the factor {factor}, which is already "
                "a column of the prompts table; rename it"
            )
        taken.add(factor)
        factors[name] = factor
    return factors


def _named(templates: Sequence[str], columns: Sequence[str]) -> set[str]:
    named: set[str] = set()
    for template in templates:
        shown = f"the template {shortened(template)!r}"
        try:
            parsed = [field for field in Formatter().parse(template) if field[1] is not None]
        except ValueError as error:
            raise UserError(f"{shown} is not valid: {error}") from error
        for _, name, form, conversion in parsed:
            if form or conversion:
                raise UserError(
                    f"{shown} formats {name}; expected only {{{name}}}, since segments are written "
                    "unchanged"
                )
        fields = {str(name) for _, name, _, _ in parsed}
        if unknown := sorted(fields - set(columns)):
            known = shortened(", ".join(columns), 200) or "(there are none)"
            hint = lookalike(unknown[0], columns) or f"expected one or more of the columns {known}"
            raise UserError(f"{shown} names {shortened(unknown[0], 60)!r}; {hint}")
        named |= fields
    return named


def _check_segments(names: Sequence[str], *, templated: bool) -> None:
    """Reject names that segments cannot have and, without a template, columns such as notes."""
    if not names:
        raise UserError(
            f"the prompt has no text: expected a column {TEXT}, or a column for each segment, "
            "such as premise1, premise2 and question"
        )
    for name in names:
        if not re.fullmatch(_NAME, name) or name in RESERVED:
            raise UserError(
                f"the column {shortened(name, 60)!r} cannot be a segment: expected a name of "
                f"letters, digits and underscores, other than {', '.join(RESERVED)}; if it is not "
                f"part of the prompt, call it {_as_factor(name)}"
            )
    unknown = [name for name in names if not _KNOWN.fullmatch(name)]
    if unknown and not templated:
        first = shortened(unknown[0], 60)
        near = nearest(unknown[0], SEGMENTS)
        meant = f"Did you mean {near}? " if near else ""
        others = f" (likewise {shortened(', '.join(unknown[1:]), 100)})" if unknown[1:] else ""
        template = "\\n".join(f"{{{name}}}" for name in names)
        raise UserError(
            f"the column {first!r} is neither a known segment nor a factor{others}. {meant}If it "
            f"is not part of the prompt, call it {_as_factor(unknown[0])}; if it is, name all "
            f"segments in a template, such as '{shortened(template)}' (--template; in Python "
            f"templates=). Known names are {', '.join(SEGMENTS)}, also numbered, such as premise1"
        )


def _as_factor(column: str) -> str:
    """The name that makes a column a factor."""
    return f"{FACTOR}{'own_' * (column in TAKEN)}{shortened(column, 60)}"


def _filled(template: str, cells: Cells) -> Iterator[tuple[str | None, str]]:
    """The parts of a template; only the first occurrence of a column is marked as a segment."""
    seen: set[str] = set()
    for before, name, _, _ in Formatter().parse(template):
        yield None, before
        if name is not None:
            yield None if name in seen else name, cells[name]
            seen.add(name)


def _answer(options: str, gold: str, contrast: str | None) -> Choice:
    """The choice described by cells: options ("Yes//True|No//False"), an answer, a contrast."""
    answers = []
    cells = options.split("|")
    for cell in cells:
        forms = _forms(cell)
        if len(cells) < 2 or not all(forms):
            # Another notation, such as "Yes, No", "Yes/No" or a JSON list.
            parts = [part.strip(" \"'[]") for part in re.split("[,;/]", options) if "|" not in part]
            meant = "|".join(parts) if len(parts) > 1 and all(parts) else "Yes/yes|No/no"
            raise UserError(
                f"{OPTIONS} is {shortened(repr(options), 80)}; expected two or more options, "
                f'separated by "|", such as "{shortened(meant, 80)}"; further forms of an option '
                f'follow "{FORMS}", as in "Yes{FORMS}True|No{FORMS}False", or "/" if they differ '
                "only in their capitals"
            )
        answers.append(AnswerOption(forms[0], forms))
    all_forms = [form for option in answers for form in option.forms]
    if twice := next((form for form, count in Counter(all_forms).items() if count > 1), None):
        raise UserError(
            f"{OPTIONS} is {shortened(repr(options), 80)}, which has {shortened(repr(twice), 60)} "
            "twice; expected forms that each belong to one option"
        )
    correct = [option.name for option in answers if gold in option.forms]
    if len(correct) != 1:
        expected = f"expected one of {', '.join(option.name for option in answers)}"
        slashed = any(gold in map(str.strip, option.name.split("/")) for option in answers)
        raise UserError(
            f"gold is {shortened(repr(gold), 60)}; {lookalike(gold, all_forms) or expected}"
            + f'; if a "/" here separates forms of one option, write "{FORMS}"' * slashed
        )
    names = tuple(option.name for option in answers)
    two = names if contrast is None else tuple(part.strip() for part in contrast.split("|"))
    if contrast is not None and not (len(set(two)) == len(two) == 2 and set(two) <= {*names}):
        raise UserError(
            f"{CONTRAST} is {shortened(repr(contrast), 80)}; expected two of the options, "
            f'separated by "|", the positive one first, such as "{shortened("|".join(names[:2]))}"'
        )
    return Choice(tuple(answers), correct[0], (two[0], two[1]) if len(two) == 2 else None)


def _forms(cell: str) -> tuple[str, ...]:
    """The forms of an option, such as Yes and yes for "Yes/yes", but n/a for "n/a"."""
    if FORMS in cell:
        parts = cell.split(FORMS)
    else:
        parts = cell.split("/")
        if all(parts) and len({part.strip().casefold() for part in parts}) > 1:
            parts = [cell]
    return tuple(dict.fromkeys(part.strip() for part in parts))


def unmarked(text: str) -> tuple[str, dict[str, Span]]:
    """Text such as "<premise1>It rains.</premise1> Is it wet?" without marks, and its segments."""
    parts: list[tuple[str | None, str]] = []
    at = 0
    for segment in _SEGMENT.finditer(text):
        parts += [(None, text[at : segment.start()]), (segment[1], segment[2])]
        at = segment.end()
    parts.append((None, text[at:]))
    names = [name for name, _ in parts if name is not None]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UserError(
            f"the text marks {shortened(repeated[0], 60)} twice; mark each segment only once"
        )
    for name, part in parts:
        if name in RESERVED:
            raise UserError(
                f"the text marks {name}, which cannot be the name of a segment; expected a name "
                f"other than {', '.join(RESERVED)}"
            )
        if name is not None and is_blank(part):
            raise UserError(
                f"the text marks {shortened(name, 60)} around nothing; mark a part of the text"
            )
        if mark := _MARK.search(part):
            raise UserError(
                f"the text has a stray {shortened(mark[0], 60)}; mark a segment as "
                "<name>...</name>, without nesting"
            )
    return compose(parts)
