"""Read files of scores that other tools computed, match them to prompts, and sum over segments.

A file has one row per score, with the columns `COLUMNS`. Tokens and spans are those of any
tokenizer. A token with characters of two segments belongs to the one with fewer tokens, as for the
model's own tokens. Files are not trusted: whatever they contain, the result is finite scores of
segments of prompts, or a `UserError`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from interp.attribution.registry import method_names
from interp.choices import RESERVED
from interp.console import counted, echo
from interp.errors import UserError, described, one_line, shortened, unknown
from interp.judging.given import NAME, Given, ScoresFile
from interp.judging.trials import CONTROLS
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.prompts.columns import Cells
from interp.prompts.files import Row as FileRow
from interp.prompts.files import parse_each, read_rows
from interp.prompts.prompt import ANSWER_PREFIX, SYSTEM_PROMPT, Prompt
from interp.prompts.thought import Span
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, ChatText, TokenizedPrompt, token_segments, token_spans
from interp.tables import Row
from interp.variants import name_of

COLUMNS = ("prompt", "segment", "token", "start", "end", "score", "target", "model", "prompt_id")
"""The prompt, by its text, by a text that holds it, such as a rendered chat template, or by its id,
which may also be named by `prompt_id`; what has the score: a segment by name, or in the order of
the text the tokens, or spans of characters from start up to end; the score; the attributed
quantity, if there are several; and the model."""

_OTHERS = (*CONTROLS, "effects")
"""Names of other rows of the tables."""

_NEEDED = (
    "expected the columns prompt (its text) and score, and segment, token (the tokens' texts, in "
    "order), or start and end (the tokens' characters in the prompt)"
)

_MOST = 1e100
"""Largest size of a score, of which sums and ratios are finite."""

_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})
"""How tokenizers spell white space in their tokens."""


_AROUND = re.compile(rf"{SYSTEM_PROMPT}|{ANSWER_PREFIX}|shot[0-9]+")
"""Segments around a prompt, which are not judged."""


class _Score(NamedTuple):
    where: str
    prompt: str
    """The cell that names the prompt."""
    named: str
    """The prompt's id, if there is a column for it."""
    target: str
    model: str
    what: str | Span
    """A segment's name, a token's text, or a span."""
    value: float


def given_scores(model: Model, spec: Given, *, batch_tokens: int | None = None) -> Measurement:
    """The rows of a model's prompts, which no pass computes."""

    def measure_batch(batch: Batch) -> list[PromptRows]:
        return [{"segment_scores": rows_of_prompt(own.prompt.id)} for own in batch.prompts]

    def rows_of_prompt(prompt: str) -> list[Row]:
        rows = (row for row in spec.rows.get(prompt, ()) if row["model"] in ("", model.name))
        return [{**row, "model": model.name} for row in rows]

    return Measurement(model, spec, token_budget(model, batch_tokens), measure_batch)


def read_scores(files: Sequence[ScoresFile], prompts: Sequence[Prompt]) -> Given:
    """The scores in files, by prompt; lines say what does not fit.

    Raises:
        UserError: a file cannot be read, is damaged, fits no prompt, or has a name that is taken.
    """
    checksums = {file.name: file.sha256 for file in files}
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in _rows_of(files, prompts):
        rows[row["prompt_id"]].append(row)
    return Given(files=checksums, rows=rows)


def _rows_of(files: Sequence[ScoresFile], prompts: Sequence[Prompt]) -> Iterator[Row]:
    """Rows of the table `segment_scores`, with an empty model if they are for every model.

    `tokens` is null if a file scores segments.
    """
    taken: set[str] = set()
    for file in files:
        scores, by = _read(file)
        targets = {own.target for own in scores}
        labels = {t: f"{file.name}:{t}" if len(targets) > 1 else file.name for t in targets}
        _check_names(file, set(labels.values()), taken)
        groups: defaultdict[tuple[str, str, str], list[_Score]] = defaultdict(list)
        found = _matched(file, {(own.prompt, own.named): own.where for own in scores}, prompts)
        for own in scores:
            if prompt := found.get((own.prompt, own.named)):
                groups[own.target, own.model, prompt.id].append(own)
        by_id = {prompt.id: prompt for prompt in found.values()}
        known = dict.fromkeys(name for prompt in by_id.values() for name in prompt.segments)
        for (target, model, id_), own in groups.items():
            if len({one.prompt for one in own}) > 1:
                raise _twice(own[-1], by_id[id_])
            prompt = by_id[id_]
            summed = (
                _by_segment(prompt, own, known)
                if by == "segment"
                else _over_tokens(prompt, own, by)
            )
            key = {"model": model, "prompt_id": id_, "method": labels[target], "target": target}
            for segment, (score, tokens) in summed.items():
                yield {**key, "segment": segment, "tokens": tokens, "score": score, "error": ""}


def _check_names(file: ScoresFile, labels: set[str], taken: set[str]) -> None:
    """Refuse scores that would be called like a method, a control or other scores."""
    for label in labels:
        if label in taken:
            raise UserError(f"two files have the scores {label}; give each file another name")
        if name_of(label).lower() in (*_OTHERS, *method_names()):
            raise UserError(
                f"the scores in {file.file} are called {label}, like other rows of the tables; "
                "give them another name, as in --scores mine=FILE"
            )
    taken |= labels


def _read(file: ScoresFile) -> tuple[list[_Score], str]:
    """The scores in a file, and what has a score: a segment, a token, or a span (start)."""
    rows = read_rows(file.file, ("score",), optional=COLUMNS)
    columns = rows[0].cells.keys()
    named = [name for name in ("segment", "token", "start") if name in columns]
    if {"start", "end"} <= columns and "segment" not in columns:
        named = ["start"]
    if len(named) != 1 or (named == ["start"]) != ({"start", "end"} <= columns):
        raise UserError(f"{file.file} has the columns {', '.join(columns)}; {_NEEDED}")
    if not {"prompt", "prompt_id"} & columns:
        raise UserError(f"{file.file} has no column prompt; {_NEEDED}")
    (by,) = named
    scores = parse_each(((row.where, row) for row in rows), lambda row: _score(row, by))
    for cells in ({own.target for own in scores}, {own.model for own in scores}):
        if "" in cells and len(cells) > 1:
            raise UserError(
                f"{file.file} names the target or the model in some rows only, such as "
                f"{shortened(max(cells), 60)}; expected it in every row, or in none"
            )
    return scores, by


def _score(row: FileRow, by: str) -> _Score:
    """A row of a file.

    Raises:
        UserError: a cell has no value, or one of another type.
    """
    cells = row.cells
    what = (_place(cells, "start"), _place(cells, "end")) if by == "start" else _text(cells, by)
    prompt, named, target, model = (
        _text(cells, name, optional=True) for name in ("prompt", "prompt_id", "target", "model")
    )
    if not prompt + named:
        raise UserError("prompt is empty; expected its text or id")
    if target and not re.fullmatch(NAME, target):
        raise UserError(
            f"target is {shortened(repr(target), 60)}; expected at most 60 letters, digits or "
            ". _ : + -"
        )
    return _Score(row.where, prompt, named, target, model, what, _number(cells, "score"))


def _text(cells: Cells, name: str, *, optional: bool = False) -> str:
    """A cell as text; ids and sentences may be numbers, but tokens may not."""
    cell = cells.get(name)
    if optional and (cell is None or (isinstance(cell, float) and math.isnan(cell))):
        return ""
    if optional and isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    if not isinstance(cell, str):
        ids = "; ids of tokens say nothing without their tokenizer" * (name == "token")
        raise UserError(f"{name} is {described(cell, 60)}; expected a text{ids}")
    return cell


def _number(cells: Cells, name: str) -> float:
    cell = cells.get(name)
    try:
        value = math.nan if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= _MOST:
        raise UserError(
            f"{name} is {described(cell, 60)}; expected a finite number up to {_MOST:g}. Leave out "
            "the rows of a prompt that has none"
        )
    return value


def _place(cells: Cells, name: str) -> int:
    value = _number(cells, name)
    if value != int(value):
        raise UserError(f"{name} is {value}; expected a whole number of characters")
    return int(value)


def _matched(
    file: ScoresFile, named: Mapping[tuple[str, str], str], prompts: Sequence[Prompt]
) -> dict[tuple[str, str], Prompt]:
    """The prompt of each pair of cells; lines say which have none, and how many prompts have none.

    Args:
        file: the file, for messages.
        named: for each pair of cells, prompt and prompt_id, the place of one of its rows.
        prompts: the prompts.
    """
    by_id = {prompt.id: prompt for prompt in prompts}
    by_text: defaultdict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        by_text[prompt.text.strip()].append(prompt)
    found: dict[tuple[str, str], Prompt] = {}
    for cells in named:
        text, id_ = cells
        own = by_text.get(text.strip()) or _within(text, by_text)
        if id_ or not own:
            by_name = by_id.get(id_ or text)
            own = [by_name] if by_name and (not id_ or not text or by_name in own) else []
        if len(own) == 1:
            found[cells] = own[0]
    wrong = [where for cells, where in named.items() if cells not in found]
    if not found:
        raise UserError(
            f"{file.name}: none of {counted(len(named), 'prompt')} in {file.file} is one of the "
            f"{len(prompts):,} prompts, whose texts are such as "
            f"{one_line(repr(prompts[0].text), 160)}; use the same --system, --data, --limit and "
            "--seed as for the scores"
        )
    if wrong:
        echo(
            f"{file.name}: {len(wrong):,} of {counted(len(named), 'prompt')} in {file.file.name} "
            f"match none of those judged, or several, by text or id, such as that in {wrong[0]}"
        )
    scored = len({prompt.id for prompt in found.values()})
    if scored < len(prompts):
        echo(f"{file.name} has scores for {scored:,} of {counted(len(prompts), 'prompt')}")
    return found


def _within(text: str, by_text: Mapping[str, list[Prompt]]) -> list[Prompt]:
    """The prompts whose text is the last in a longer text, such as a rendered chat template."""
    places = {own: text.rfind(own) + len(own) for own in by_text if own in text}
    return by_text[max(places, key=lambda own: (places[own], len(own)))] if places else []


_Sums = dict[str, tuple[float, int | None]]
"""The score of each segment, and over how many tokens it is summed, if over any."""


def _by_segment(prompt: Prompt, scores: Sequence[_Score], known: Mapping[str, None]) -> _Sums:
    summed: _Sums = {}
    for own in scores:
        name = str(own.what)
        if name not in (*known, *RESERVED) and not _AROUND.fullmatch(name):
            raise UserError(f"{own.where}: {unknown('segment', name, known)}")
        if name in summed:
            raise _twice(own, prompt)
        summed[name] = own.value, None
    return {name: score for name, score in summed.items() if name in prompt.segments}


def _over_tokens(prompt: Prompt, scores: Sequence[_Score], by: str) -> _Sums:
    """Sums over the tokens of each segment that has any; no token outside the prompt counts."""
    core = prompt.text.strip()
    text = scores[0].prompt if core in scores[0].prompt else prompt.text
    if by == "token":
        text, spans = _joined(prompt, scores)
    else:
        spans = [own.what for own in scores if not isinstance(own.what, str)]
        _check_spans(prompt, scores, spans, len(text))
    shift = text.rindex(core) - prompt.text.index(core)
    offsets = [(start - shift, end - shift) for start, end in spans]
    covered = {
        name: (start, end)
        for name, (start, end) in prompt.segments.items()
        if any(max(a, start) < min(b, end) for a, b in offsets)
    }
    chat, ids = ChatText(prompt.text, 0, templated=True), tuple(range(len(offsets)))
    ranges = token_spans(prompt, chat, covered, offsets)
    labels = np.array(token_segments(TokenizedPrompt(prompt, chat, ids, ranges)), dtype=object)
    values = np.array([own.value for own in scores])
    own = {name: values[labels == name] for name in covered}
    return {name: (float(scores.sum()), len(scores)) for name, scores in own.items()}


def _joined(prompt: Prompt, scores: Sequence[_Score]) -> tuple[str, list[Span]]:
    """The text of all tokens, and the span of each.

    Raises:
        UserError: it does not hold the prompt's text, or holds it twice.
    """
    core, written = prompt.text.strip(), [str(own.what) for own in scores]
    for tokens in (written, [token.translate(_MARKS) for token in written]):
        text = "".join(tokens)
        if text.count(core) > 1:
            raise _twice(scores[-1], prompt)
        if core in text:
            ends = [0, *accumulate(map(len, tokens))]
            return text, list(pairwise(ends))
    raise UserError(
        f"{scores[0].where}: the tokens of prompt {shortened(prompt.id, 60)} do not join to its "
        f"text, but to {one_line(repr(text), 160)}; expected {one_line(repr(core), 160)}. Give "
        "columns start and end, as tokenizers tell by return_offsets_mapping=True"
    )


def _check_spans(
    prompt: Prompt, scores: Sequence[_Score], spans: Sequence[Span], length: int
) -> None:
    """Refuse spans beyond the text, and those that are there twice.

    The tokens of a character that has several share its span.
    """
    before = (0, 0)
    for own, (start, end) in zip(scores, spans, strict=True):
        if not 0 <= start <= end <= length:
            raise UserError(
                f"{own.where}: the span from {start} to {end} is not within the {length:,} "
                f"characters of prompt {shortened(prompt.id, 60)}"
            )
        if start < end:
            if start < before[0] or ((start, end) == before and end - start > 1):
                raise _twice(own, prompt)
            before = start, end


def _twice(own: _Score, prompt: Prompt) -> UserError:
    return UserError(
        f"{own.where}: prompt {shortened(prompt.id, 60)} has scores for the same text a second "
        "time, or not in the order of the text; expected each once. Several targets need a column "
        "target, several models a column model, and several methods a file each"
    )
