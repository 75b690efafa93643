"""Scores of single items that other tools stored: lm-eval's samples, logs of Inspect, and tables.

Files are not trusted: whatever they contain, the result is scores or a `UserError`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict

from interp.errors import UserError, described, one_line, shortened
from interp.files import RECORD_BYTES, check_fits, read_bytes, reading
from interp.prompts.files import read_rows
from interp.prompts.own.table import text_of
from interp.stored.inspect_log import Log, Records, Sample, is_archive, is_log, log_of
from interp.stored.lines import LmEvalSample, innermost
from interp.stored.read import records_of
from interp.stored.schema import checked, parsed
from interp.texts import real

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Inspect's scores in letters (correct, partial, incorrect, no answer) and words."""

LARGEST = 1e100
"""Size up to which squares of scores can be added up."""

_SCORE = ("score", "correct")
_COLUMNS = {
    "item": ("item", "item_id", "id", "prompt_id", "sample_id", "doc_id", "question_id"),
    "text": ("text", "prompt", "question", "input"),
    "answer": ("answer", "response", "completion", "output"),
    "epoch": ("epoch", "draw"),
    "target": ("target", "gold"),
}
"""Columns of tables by what they hold; of several, the first counts."""

_LM_EVAL = (
    *("versions {task}", "n-shot {task}", "config limit", "config fewshot_seed"),
    *("chat_template_sha", "system_instruction_sha"),
)
_INSPECT = (
    *("task", "task_version", "task_args", "solver", "dataset name", "dataset shuffled"),
    *("config sample_shuffle", "config limit", "config epochs"),
)
"""Settings that are told if they differ: their places in what a tool writes about a task."""

_NO_METRICS = {"prompt_hash", "target_hash"}

_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-?[^/]*)\.jsonl")


class Scored(NamedTuple):
    """What a tool stored about one item, once for each epoch and filter."""

    item: str
    """The tool's id."""
    text: str
    """What was asked; empty if the file does not say."""
    scores: Mapping[str, float]
    """By metric; NaN if there is none."""
    fields: Mapping[str, Any]
    """Fields of the document with its task, metadata or further columns."""
    epoch: str = ""
    filter: str = ""
    document: str = ""
    """What identifies the item's document, if the text also depends on the prompt's form."""
    target: str = ""
    answer: str = ""
    task: str = ""
    failed: bool = False
    refused: bool = False


@dataclass
class ScoreFile:
    """All that a file or folder says about items."""

    name: str
    """The model's name or, without one, the file's."""
    rows: list[Scored] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """What the tool recorded about the task, such as its version."""
    said: list[str] = field(default_factory=list)
    """What a reader must know before any number."""
    unread: dict[str, str] = field(default_factory=dict)
    """Metrics that are no number of an item, each with an example."""
    archive: Path | None = None
    """A log of Inspect whose answers are in its samples, which are not read for their scores."""
    cluster: str = ""
    weight: str = ""
    """The fields that name dependent items, and say how many one represents, of logs of interp."""

    def read(self, where: str, values: Mapping[str, object]) -> dict[str, float]:
        """The scores of an item by metric; what is none is noted, and what is too large refused."""
        scores: dict[str, float] = {}
        for metric, value in values.items():
            try:
                score = scores[metric] = _number(value)
            except ValueError:
                self.unread.setdefault(metric, f"{shortened(repr(value), 60)} ({where})")
                continue
            if abs(score) > LARGEST:
                raise UserError(
                    f"{where}: {one_line(metric)} is {score}; expected a score of at most "
                    f"{LARGEST:g} in size. Correct or remove it"
                )
        return scores


def _number(value: object) -> float:
    """A score, or NaN where there is none (ValueError: it is no score)."""
    if isinstance(value, str):
        text = value.strip()
        value = LETTERS.get(text, LETTERS.get(text.lower(), text or None))
    if value is None:
        return math.nan
    if not isinstance(value, str | int | float):
        raise ValueError("no number")
    try:
        return real(value)
    except OverflowError:
        return math.inf


def read_scores(path: Path, metrics: Sequence[str] = ()) -> ScoreFile:
    """The scores in samples of lm-eval or their folder, a log of Inspect, or a table.

    `metrics` are columns of tables that are scores; by default, `score` or `correct`.
    """
    if not (path.is_file() or path.is_dir()):
        raise UserError(
            f"no file at {shortened(str(path))!r}; expected a folder of interp, samples of lm-eval "
            "or their folder, a log of Inspect (.eval, .json), or a table with an item and a score"
        )
    if path.is_dir():
        log = _of_samples(path.resolve().name, _samples_in(path))
    elif path.suffix == ".eval" or is_archive(path):
        log = _of_log(path, *log_of(path, short=True))
    else:
        log = _of_document(path, metrics)
    if not log.rows:
        raise UserError(f"{path} holds no items; expected at least one")
    return log


def _of_document(path: Path, metrics: Sequence[str]) -> ScoreFile:
    check_fits(path)
    first, records = records_of(path)
    keys = first.keys() if isinstance(first, Mapping) else set()
    if is_log(first):
        return _of_log(path, *log_of(path, first))
    if keys >= {"doc", "resps"}:
        name = path.absolute().parent.name if _SAMPLES.fullmatch(path.name) else path.stem
        return _of_samples(name, {path: records})
    if keys >= {"results", "configs"}:
        raise UserError(
            f"{path} holds no scores of items; name its folder, or run lm-eval with --log_samples"
        )
    return _of_table(path, metrics)


class _Sample(LmEvalSample):
    """A sample of lm-eval with its scores; metrics are further keys."""

    model_config = ConfigDict(extra="allow")

    doc_id: str | int
    target: Any = None
    metrics: list[str] | None = None
    doc_hash: str = ""


def _samples_in(folder: Path) -> dict[Path, Records]:
    with reading(folder):
        files = sorted(file for file in folder.rglob("samples_*.jsonl") if file.is_file())
        others = sorted(file.name for file in folder.iterdir() if not file.is_dir())
    if not files:
        inside = f"{len(others):,} other files, such as {one_line(others[0])}" if others else "none"
        raise UserError(
            f"{folder} holds no samples ({inside}); name a file, such as a log of Inspect or a "
            "table, or a folder with samples_*.jsonl, which lm-eval writes with --log_samples"
        )
    task, count = Counter(map(_task, files)).most_common(1)[0]
    if count > 1:
        raise UserError(
            f"{folder} holds {count} results of {one_line(task)}; name the file of one of them, "
            "or move the others away"
        )
    return {file: records_of(file)[1] for file in files}


def _task(file: Path) -> str:
    named = _SAMPLES.fullmatch(file.name)
    return named["task"] if named else file.stem.removeprefix("samples_")


def _of_samples(name: str, files: Mapping[Path, Records]) -> ScoreFile:
    """The scores of one or more tasks, of the model that the results beside them name."""
    log = ScoreFile(name)
    for file, records in files.items():
        task, named, result = _task(file), _SAMPLES.fullmatch(file.name), None
        rows = [_of_sample(*record, task, log) for record in records]
        log.rows += rows
        if named and (beside := file.with_name(f"results_{named['date']}.json")).is_file():
            result = parsed(beside.name, read_bytes(beside, limit=RECORD_BYTES))
            log.settings |= _settings(_LM_EVAL, result, task)
        model, planned = _at(result, "model_name"), _at(result, "n-samples {task} effective", task)
        if isinstance(model, str) and model.strip() and log.name == name:
            log.name = one_line(model)
        items = len({row.item for row in rows})
        if isinstance(planned, int) and items < planned:
            log.said.append(f"{file.name} stopped early: it holds {items:,} items")
    return log


def _at(record: object, place: str, task: str = "") -> object:
    """What a JSON document has at a place, which is keys with blanks between; None if nothing."""
    for key in place.split():
        record = record.get(key.format(task=task)) if isinstance(record, dict) else None
    return record


def _settings(places: Iterable[str], record: object, task: str = "") -> dict[str, str]:
    """What may differ between two results, as text."""
    settings = {}
    for place in places:
        value = _at(record, place, task)
        text = json.dumps(value, sort_keys=True) if isinstance(value, dict) else str(value)
        name = one_line(place.format(task=task))
        settings[name] = "none" if value is None else one_line(text, 80)
    return settings


def _of_sample(where: str, record: object, task: str, log: ScoreFile) -> Scored:
    sample = checked(where, _Sample, record)
    values, requests = sample.model_extra or {}, sample.requests
    names = values.keys() - _NO_METRICS if sample.metrics is None else {*sample.metrics}
    first = innermost(sample.resps)
    return Scored(
        sample.prompt_id or str(sample.doc_id),
        requests[0][0] if requests else "",
        log.read(where, {name: values[name] for name in sorted(names & values.keys())}),
        sample.doc | {"task": task},
        filter="" if sample.filter == "none" else sample.filter,
        document=sample.doc_hash or json.dumps(sample.doc, sort_keys=True),
        target=str(sample.target),
        answer=first if isinstance(first, str) and len(requests) < 2 else "",
        task=task,
    )


def _of_log(file: Path, about: Log, samples: Records) -> ScoreFile:
    name, done = one_line(about.eval.model or "") or file.stem, about.results
    log = ScoreFile(name, settings=_settings(_INSPECT, about.eval.model_extra))
    log.archive = file if about.samples is None else None
    rows = [_of_summary(where, checked(where, Sample, record), log) for where, record in samples]
    log.rows = list({(row.item, row.epoch, row.text): row for row in rows}.values())
    if again := len(rows) - len(log.rows):
        log.said.append(f"{again:,} samples were repeated, of which the last counts")
    if about.status != "success" or (done and done.completed_samples < done.total_samples):
        of = f" of {done.total_samples:,}" if done and done.total_samples else ""
        note = f"stopped early (status {one_line(about.status)}): it holds {len(log.rows):,}{of}"
        log.said.append(f"{note} samples")
    return log


def _of_summary(where: str, sample: Sample, log: ScoreFile) -> Scored:
    values: dict[str, object] = {}
    scores, choices = sample.scores or {}, sample.output.choices
    for scorer, score in scores.items():
        parts = score.value if isinstance(score.value, dict) else {None: score.value}
        values |= {f"{scorer}/{name}" if name else scorer: part for name, part in parts.items()}
    return Scored(
        str(sample.id),
        (sample.asked or "").removesuffix("...\n(content truncated)"),
        log.read(where, values),
        sample.metadata if isinstance(sample.metadata, dict) else {},
        epoch=str(sample.epoch),
        target=sample.target if isinstance(sample.target, str) else json.dumps(sample.target),
        answer=sample.output.completion
        or next((score.answer for score in scores.values() if score.answer), ""),
        failed=sample.error is not None,
        refused=any(choice.finish_reason == "content_filter" for choice in choices)
        or "N" in values.values(),
    )


def _of_table(file: Path, metrics: Sequence[str]) -> ScoreFile:
    rows = read_rows(file, (), others=True, nested=True)
    columns, log = [*rows[0].cells], ScoreFile(file.stem)
    places = {what: next(filter(columns.__contains__, _COLUMNS[what]), "") for what in _COLUMNS}
    item, wanted = places["item"], [name for name in metrics if name in columns]
    scores = wanted or [name for name in _SCORE if name in columns][:1]
    if not item or not scores:
        missing = f"scores: {' or '.join(_SCORE)}, or a column that --metric names"
        missing = missing if item else f"items: {', '.join(_COLUMNS['item'])}"
        listed = shortened(", ".join(columns))
        raise UserError(f"{file} has no column of {missing}; it has {listed}")
    if models := sorted({text_of(row.cells.get("model")).strip() for row in rows} - {""}):
        log.name = one_line(models[0])
    if len(models) > 1:
        raise UserError(
            f"{file} has scores of {len(models)} models, such as {one_line(', '.join(models))}; "
            "expected one model in each file"
        )
    for where, cells in rows:
        texts: dict[str, Any]
        texts = {what: text_of(cells.get(name)).strip() for what, name in places.items()}
        if not texts["item"] or isinstance(cells[item], bool | list | dict):
            raise UserError(
                f"{where}: {item} is {described(cells[item])}; expected a text or number"
            )
        read = log.read(where, {name: cells[name] for name in scores})
        fields = {name: cell for name, cell in cells.items() if name not in (item, *scores)}
        log.rows.append(Scored(**texts, scores=read, fields=fields))
    return log
