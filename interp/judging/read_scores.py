"""Read files of scores that other tools computed, match them to prompts, and sum over segments.

Tokens and spans are those of any tokenizer. A token with characters of two segments belongs to the
one with fewer tokens, as for the model's own tokens. Files are not trusted: whatever they contain,
the result is finite scores of segments of prompts, or a `UserError`.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field

from interp.attribution.registry import method_names
from interp.console import counted, echo
from interp.errors import UserError, one_line, shortened, unknown
from interp.judging.given import Given
from interp.judging.trials import CONTROLS
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.prompts.files import read_rows
from interp.prompts.prompt import ANSWER_PREFIX, INSTRUCTION, SYSTEM_PROMPT, Prompt
from interp.prompts.thought import Span
from interp.reading.budget import token_budget
from interp.reading.tokens import Batch, ChatText, TokenizedPrompt, token_segments, token_spans
from interp.stored.schema import Stored, checked
from interp.stored.text_file import TextFile
from interp.tables import Row
from interp.texts import real
from interp.variants import name_of

MOST_TARGETS = 20
"""Largest number of targets of a file; all of them are compared with each other."""

_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})
"""How tokenizers spell white space in their tokens."""


_Label = Annotated[str, Field(coerce_numbers_to_str=True)]
_NUMBER = BeforeValidator(lambda cell: real(cell) if isinstance(cell, str) else cell)
"""Texts are numbers as people write them: 1_000 is none."""
_Place = Annotated[int, Field(ge=-(2**31), le=2**31), _NUMBER]


class _Score(Stored):
    """A row of a file; cells of CSV files are texts."""

    model_config = ConfigDict(strict=False)

    where: str
    prompt: Annotated[_Label, Field(min_length=1)]
    """The prompt's text, a text that holds it, such as a rendered chat template, or its id."""
    score: Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False), _NUMBER]
    """So small that sums and ratios are finite."""
    segment: str = ""
    token: str = ""
    """The text of a token; those of a prompt are in the order of the text."""
    start: _Place = 0
    end: _Place = 0
    target: _Label | None = None
    model: _Label | None = None


def given_scores(model: Model, spec: Given, *, batch_tokens: int | None = None) -> Measurement:
    """The rows of a model's prompts, which no pass computes."""

    def measure_batch(batch: Batch) -> list[PromptRows]:
        by_prompt = [spec.rows.get(tokenized.prompt.id, ()) for tokenized in batch.prompts]
        ours = [[row for row in rows if row["model"] in ("", model.name)] for rows in by_prompt]
        return [{"segment_scores": [row | {"model": model.name} for row in rows]} for rows in ours]

    return Measurement(model, spec, token_budget(model, batch_tokens), measure_batch)


def read_scores(files: Mapping[str, TextFile], prompts: Sequence[Prompt]) -> dict[str, list[Row]]:
    """Rows of the table `segment_scores` by prompt, without a model if they are for every model.

    Lines say what does not fit. `tokens` is null if a file scores segments. `files` are named like
    their scores.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    taken = {*CONTROLS, "effects", *method_names()}
    for name, file in files.items():
        scores, by = _read(file)
        matched = _matched(name, {score.prompt: score.where for score in scores}, prompts)
        targets = list(dict.fromkeys(score.target or "" for score in scores))
        if len(targets) > MOST_TARGETS:
            raise UserError(
                f"{name} has {len(targets):,} targets, such as {one_line(targets[0], 60)}, but at "
                f"most {MOST_TARGETS} are judged; leave the column out if each prompt has its own"
            )
        labels = {target: f"{name}:{target}" if len(targets) > 1 else name for target in targets}
        for label in labels.values():
            _check_name(label, taken)
            taken.add(label)
        groups: defaultdict[tuple[str, str, str], list[_Score]] = defaultdict(list)
        for score in scores:
            if prompt := matched.get(score.prompt):
                groups[score.target or "", score.model or "", prompt.id].append(score)
        for (target, model, id_), group in groups.items():
            key = {"model": model, "prompt_id": id_, "method": labels[target], "target": ""}
            rows[id_] += [key | row for row in _summed(matched[group[0].prompt], group, by)]
    return rows


def _check_name(label: str, taken: Container[str]) -> None:
    """Refuse scores that would be called like a method, a control, other scores, or markup."""
    if not re.fullmatch(r"[\w.:+-]{1,60}", label):
        raise UserError(
            f"scores are called {shortened(repr(label), 80)}; expected NAME=FILE, and targets, "
            "with at most 60 letters, digits or . _ : + -"
        )
    if label in taken or name_of(label).lower() in taken:
        raise UserError(
            f"scores are called {label}, like other rows of the tables; give them another name, "
            "as in --scores mine=FILE"
        )


def _read(file: TextFile) -> tuple[list[_Score], str]:
    """The scores in a file, and what has a score: "segment", "token" or "start"."""
    optional = ("segment", "token", "start", "end", "target", "model")
    rows = read_rows(file.file, ("prompt", "score"), optional=optional)
    columns = rows[0].cells.keys()
    spans = {"start", "end"} <= columns and "segment" not in columns
    by = ["start"] if spans else [name for name in optional[:3] if name in columns]
    if len(by) != 1 or (by == ["start"]) != spans:
        raise UserError(
            f"{file.file} has the columns {', '.join(columns)}; expected prompt, score, and "
            "segment, token (the tokens' texts), or start and end (a token's characters)"
        )
    scores = [checked(row.where, _Score, {"where": row.where, **row.cells}) for row in rows]
    named = {(bool(score.target), bool(score.model)) for score in scores}
    if len(named) > 1:
        raise UserError(
            f"{file.file} names the target or the model in some rows only; expected it in every "
            "row, or in none"
        )
    return scores, by[0]


def _matched(name: str, cells: Mapping[str, str], prompts: Sequence[Prompt]) -> dict[str, Prompt]:
    """The prompt of each cell; lines say which of the cells, given with their places, have none."""
    by_id = {prompt.id: [prompt] for prompt in prompts}
    by_text: defaultdict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        by_text[prompt.text.strip()].append(prompt)
    several = {
        cell: by_text.get(cell.strip()) or by_id.get(cell) or _within(cell, by_text)
        for cell in cells
    }
    matched = {cell: fitting[0] for cell, fitting in several.items() if len(fitting) == 1}
    wrong = [where for cell, where in cells.items() if cell not in matched]
    if not matched:
        raise UserError(
            f"{name}: none of {counted(len(cells), 'prompt')} in the file is one of the "
            f"{len(prompts):,} prompts, such as {one_line(repr(prompts[0].text), 160)}; use the "
            "same --system, --data, --limit and --seed as for the scores"
        )
    if wrong:
        echo(
            f"{name}: {len(wrong):,} of {counted(len(cells), 'prompt')} in the file match none of "
            f"those judged, or several, such as {wrong[0]}"
        )
    scored = len({prompt.id for prompt in matched.values()})
    if scored < len(prompts):
        echo(f"{name} has scores for {scored:,} of {counted(len(prompts), 'prompt')}")
    return matched


def _within(text: str, by_text: Mapping[str, list[Prompt]]) -> list[Prompt]:
    """The prompts whose text is the last in a longer text, such as a rendered chat template."""
    ends = {(text.rfind(core) + len(core), len(core)): core for core in by_text if core in text}
    return by_text[ends[max(ends)]] if ends else []


def _summed(prompt: Prompt, scores: Sequence[_Score], by: str) -> Iterator[Row]:
    """The score of each segment, with its share of the sizes of all scores of the prompt."""
    if len({row.prompt for row in scores}) > 1:
        raise _twice(scores[-1], prompt)
    segments = [row.segment for row in scores] if by == "segment" else _segments(prompt, scores, by)
    values, labels = np.array([row.score for row in scores]), np.array(segments, dtype=object)
    if by == "segment" and len(set(segments)) < len(segments):
        raise _twice(scores[-1], prompt)
    expected = rf"template|{SYSTEM_PROMPT}|{INSTRUCTION}|{ANSWER_PREFIX}|shot\d+\w*"
    around = [row for row in scores if row.segment not in prompt.segments]
    strange = [row for row in around if not re.fullmatch(expected, row.segment)]
    if by == "segment" and strange and not prompt.segments.keys() <= set(segments):
        problem = unknown("segment", strange[0].segment, prompt.segments)
        raise UserError(f"{strange[0].where}: {problem}")
    total = np.abs(values).sum()
    for name in [segment for segment in prompt.segments if segment in segments]:
        inside = values[labels == name]
        yield {
            "segment": name,
            "tokens": None if by == "segment" else len(inside),
            "score": float(inside.sum()),
            "share": float(np.abs(inside).sum() / total) if total else None,
            "error": "",
        }


def _segments(prompt: Prompt, scores: Sequence[_Score], by: str) -> list[str]:
    """The segment of each token, as for the model's own tokens."""
    offsets = _offsets(prompt, scores, by)
    covered = {
        name: (start, end)
        for name, (start, end) in prompt.segments.items()
        if any(max(a, start) < min(b, end) for a, b in offsets)
    }
    if not covered:
        raise UserError(
            f"{scores[0].where}: the spans of prompt {shortened(prompt.id, 60)} hold no characters "
            "of its segments; expected where each token starts and ends in the text"
        )
    chat, ids = ChatText(prompt.text, 0, templated=True), tuple(range(len(offsets)))
    ranges = token_spans(prompt, chat, covered, offsets)
    return token_segments(TokenizedPrompt(prompt, chat, ids, ranges))


def _offsets(prompt: Prompt, scores: Sequence[_Score], by: str) -> list[Span]:
    """Each token's characters in the prompt's text; those around it are outside."""
    core = prompt.text.strip()
    text, spans = scores[0].prompt, [(score.start, score.end) for score in scores]
    if by == "token":
        text, spans = _joined(prompt, scores)
    elif core not in text:  # which is an id
        text = prompt.text
    read = 0
    for score, (start, end) in zip(scores, spans, strict=True):
        if not 0 <= start <= end <= len(text):
            raise UserError(
                f"{score.where}: the span from {start} to {end} is not within the {len(text):,} "
                f"characters of prompt {shortened(prompt.id, 60)}"
            )
        if start < end:
            if start < read - 1:  # several tokens may write one character
                raise _twice(score, prompt)
            read = end
    shift = text.rindex(core) - prompt.text.index(core)
    return [(start - shift, end - shift) for start, end in spans]


def _joined(prompt: Prompt, scores: Sequence[_Score]) -> tuple[str, list[Span]]:
    """The text of all tokens, which must hold the prompt's text once, and the span of each."""
    core, written = prompt.text.strip(), [score.token for score in scores]
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


def _twice(score: _Score, prompt: Prompt) -> UserError:
    return UserError(
        f"{score.where}: prompt {shortened(prompt.id, 60)} has scores for the same text a second "
        "time, or not in the order of the text; expected each once. Several targets need a column "
        "target, several models a column model, and several methods a file each"
    )
