"""Scores of single items that other tools stored: lm-eval's samples, logs of Inspect, and tables.

Files are not trusted: whatever they contain, the result is scores or a `UserError`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zipfile import is_zipfile

from pydantic import ConfigDict, Field

from interp.errors import UserError, described, one_line, shortened
from interp.files import RECORD_BYTES, check_fits, read_bytes, reading
from interp.prompts.files import read_rows
from interp.stored.inspect_log import Log, is_log, log_of, samples_of, summaries_of_archive
from interp.stored.lines import requests_of
from interp.stored.read import document_of, lines_of
from interp.stored.schema import Message, Stored, asked, checked, parsed

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Inspect's scores in letters (correct, partial, incorrect, no answer) and words."""

LARGEST = 1e100
"""Size up to which squares of scores can be added up."""

_ITEM = ("item", "item_id", "id", "prompt_id", "sample_id", "doc_id", "question_id")
_SCORE = ("score", "correct")
_TEXT = ("text", "prompt", "question", "input")
_ANSWER = ("answer", "response", "completion", "output")
_EPOCH = ("epoch", "draw")
"""Columns of tables by what they hold; of several, the first counts."""


class Scored(NamedTuple):
    """What a tool stored about one item, once for each epoch and filter."""

    item: str
    """The tool's id."""
    text: str
    """What was asked; empty if the file does not say."""
    scores: Mapping[str, float]
    """By metric; NaN if there is none."""
    fields: Mapping[str, Any]
    """Fields of the document, metadata or further columns."""
    epoch: str = ""
    filter: str = ""
    document: str = ""
    """What identifies the item's document, if the text also depends on the prompt's form."""
    target: str = ""
    answer: str = ""
    task: str = ""
    error: str = ""
    refused: bool = False


@dataclass
class ScoreFile:
    """All that a file or folder says about items."""

    name: str
    """The model's name or, without one, the file's."""
    rows: list[Scored] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """What the tool recorded about the task, such as its version."""
    notes: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    """Metrics that are no number of an item, each with an example."""
    archive: Path | None = None
    """A log of Inspect whose answers are in its samples, which are not read for their scores."""

    def read(self, where: str, values: Mapping[str, object]) -> dict[str, float]:
        """The scores of an item by metric; what is no score is noted.

        Raises:
            UserError: a score is infinite, or larger than `LARGEST`.
        """
        found = {}
        for metric, value in values.items():
            score = _number(value)
            if score is None:
                self.unread.setdefault(metric, f"{shortened(repr(value), 60)} ({where})")
            elif abs(score) > LARGEST:
                raise UserError(
                    f"{where}: {one_line(metric)} is {score}; expected a score of at most "
                    f"{LARGEST:g} in size. Correct or remove it"
                )
            else:
                found[metric] = score
        return found


def _number(value: object) -> float | None:
    """A score; NaN where there is none, None for what is no score."""
    if isinstance(value, str):
        text = value.strip()
        if (letter := LETTERS.get(text, LETTERS.get(text.lower()))) is not None:
            return letter
        with suppress(ValueError):
            return float(text or "nan")
        return None
    if value is None:
        return math.nan
    with suppress(OverflowError):
        return float(value) if isinstance(value, int | float) else None
    return math.inf


def read_scores(path: Path, metrics: Sequence[str] = ()) -> ScoreFile:
    """The scores in a file, or in lm-eval's folder of results.

    Args:
        path: samples of lm-eval or their folder, a log of Inspect, or a table.
        metrics: columns of tables that are scores; by default, `score` or `correct`.

    Raises:
        UserError: the file cannot be read, is of no known format, is damaged, or has no scores.
    """
    if not path.exists():
        raise UserError(
            f"no file at {shortened(str(path))!r}; expected a folder of interp, samples of lm-eval "
            "or their folder, a log of Inspect (.eval, .json), or a table with an item and a score"
        )
    if path.is_dir():
        found = _of_folder(path)
    elif path.suffix == ".eval" or (
        is_zipfile(path) and path.suffix.lower() not in (".xlsx", ".xlsm")
    ):
        found = _of_log(path, *summaries_of_archive(path))
        found.archive = path
    else:
        check_fits(path)
        document = document_of(path)
        if is_log(document):
            log = log_of(path.name, document)
            found = _of_log(path, log, samples_of(path.name, log))
        elif isinstance(document, Mapping) and document.keys() >= {"doc", "resps"}:
            found = _of_samples([path])
        elif isinstance(document, Mapping) and document.keys() >= {"results", "configs"}:
            raise UserError(
                f"{path} holds no scores of items; name its folder, or run lm-eval with "
                "--log_samples"
            )
        else:
            found = _of_table(path, metrics)
    if not found.rows:
        raise UserError(f"{path} holds no items; expected at least one")
    return found


class _Sample(Stored):
    """A sample of lm-eval; its metrics are further keys."""

    model_config = ConfigDict(extra="allow")

    doc_id: str | int
    doc: dict[str, Any]
    target: Any = None
    arguments: Any = None
    resps: list[Any] = Field(default_factory=list)
    filter: str = "none"
    metrics: list[str] | None = None
    doc_hash: str = ""


_PLANNED = "samples"
_HASHES = {"prompt_hash", "target_hash", "filtered_resps"}

_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-?[^/]*)\.jsonl")


def _of_folder(folder: Path) -> ScoreFile:
    """The samples of each task in a folder of lm-eval's results."""
    with reading(folder):
        files = sorted(folder.rglob("samples_*.jsonl"))
    tasks = Counter(_task(file) for file in files)
    if not files:
        raise UserError(
            f"{folder} holds no samples; expected samples_*.jsonl, which lm-eval writes with "
            "--log_samples, or a folder that a command of interp wrote"
        )
    if twice := [task for task, count in tasks.items() if count > 1]:
        raise UserError(
            f"{folder} holds {tasks[twice[0]]} results of {one_line(twice[0])}; name the file of "
            "one of them, or move the others away"
        )
    return _of_samples(files)


def _task(file: Path) -> str:
    found = _SAMPLES.fullmatch(file.name)
    return found["task"] if found else file.stem.removeprefix("samples_")


def _of_samples(files: Iterable[Path]) -> ScoreFile:
    found = ScoreFile("")
    for file in files:
        task, rows = _task(file), len(found.rows)
        _tell_results(file, task, found)
        for where, record in lines_of(file):
            found.rows.append(_of_sample(where, checked(where, _Sample, record), task, found))
        found.name = found.name or (file.parent.name if _SAMPLES.fullmatch(file.name) else "")
        found.name = found.name or file.stem
        items = len({own.item for own in found.rows[rows:]})
        planned = found.settings.pop(_PLANNED, "")
        if planned.isdecimal() and items < int(planned):
            found.notes.append(f"{file.name} stopped early: it holds {items:,} items")
    return found


def _of_sample(where: str, sample: _Sample, task: str, found: ScoreFile) -> Scored:
    own = sample.model_extra or {}
    names = own.keys() - _HASHES if sample.metrics is None else own.keys() & {*sample.metrics}
    given = sample.arguments
    given = [*given.values()] if isinstance(given, dict) else given
    given = given if isinstance(given, list) else []
    requests = requests_of(given[:1])
    first = sample.resps[0] if sample.resps else None
    while isinstance(first, list) and first:
        first = first[0]
    named = sample.doc.get("prompt_id")
    return Scored(
        named if isinstance(named, str) else str(sample.doc_id),
        requests[0][0] if requests else "",
        found.read(where, {name: own[name] for name in sorted(names)}),
        sample.doc,
        filter="" if sample.filter == "none" else sample.filter,
        document=sample.doc_hash or json.dumps(sample.doc, sort_keys=True),
        target=str(sample.target),
        answer=first if isinstance(first, str) and len(given) < 2 else "",
        task=task,
    )


def _tell_results(file: Path, task: str, found: ScoreFile) -> None:
    """Add what the results beside lm-eval's samples say about the task."""
    date = _SAMPLES.fullmatch(file.name)
    beside = file.with_name(f"results_{date['date']}.json") if date else file
    if beside == file or not beside.is_file():
        return
    document = parsed(beside.name, read_bytes(beside, limit=RECORD_BYTES))
    told = document if isinstance(document, dict) else {}

    def of(*keys: str) -> object:
        value: object = told
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    settings = {
        "version": of("versions", task),
        "shots": of("n-shot", task),
        "limit": of("config", "limit"),
        "seed of shots": of("config", "fewshot_seed") if of("n-shot", task) else None,
        "chat template": of("chat_template_sha"),
        "instruction": of("system_instruction_sha"),
        _PLANNED: of("n-samples", task, "effective"),
    }
    found.settings |= {name: str(own)[:80] for name, own in settings.items() if own is not None}
    name = of("model_name")
    found.name = found.name or (one_line(name) if isinstance(name, str) else "")


class _Score(Stored):
    value: Any = None
    answer: str | None = None


class _Choice(Stored):
    stop_reason: str | None = None


class _Said(Stored):
    choices: Annotated[tuple[_Choice, ...], Field(strict=False)] = ()
    completion: str | None = None


class _Summary(Stored):
    """A sample of Inspect, or its summary."""

    id: str | int
    epoch: int = 1
    input: str | list[Message] = ""
    target: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    scores: dict[str, _Score] | None = None
    error: Any = None
    output: _Said = _Said()


def _of_log(file: Path, log: Log, samples: Iterable[tuple[str, object]]) -> ScoreFile:
    task, config = log.eval, log.eval.config
    name = task.model or file.stem
    found = ScoreFile(one_line(name))
    for key, value in {
        "task": task.task,
        "version": task.task_version,
        "arguments": json.dumps(task.task_args, sort_keys=True),
        "solver": task.solver,
        "data": task.dataset.name,
        "shuffled": task.dataset.shuffled or bool(config.get("sample_shuffle")),
        "limit": config.get("limit"),
        "epochs": config.get("epochs"),
    }.items():
        if value is not None:
            found.settings[key] = one_line(str(value))
    rows = {}
    for where, record in samples:
        own = _of_summary(where, checked(where, _Summary, record), found)
        rows[own.item, own.epoch] = own  # of one that was repeated after an error, the last counts
    found.rows = list(rows.values())
    done = log.results
    if log.status != "success" or (done and done.completed_samples < done.total_samples):
        of = f" of {done.total_samples:,}" if done and done.total_samples else ""
        found.notes.append(
            f"stopped early (status {one_line(log.status)}): it holds {len(rows):,}{of} samples"
        )
    return found


def _of_summary(where: str, sample: _Summary, found: ScoreFile) -> Scored:
    values: dict[str, object] = {}
    for scorer, score in (sample.scores or {}).items():
        several = score.value if isinstance(score.value, dict) else None
        values |= {scorer: score.value} if several is None else {
            f"{scorer}/{name}": value for name, value in several.items()
        }  # fmt: skip
    answers = [score.answer for score in (sample.scores or {}).values() if score.answer]
    text = sample.input if isinstance(sample.input, str) else asked(sample.input) or ""
    stopped = any(own.stop_reason == "content_filter" for own in sample.output.choices)
    return Scored(
        str(sample.id),
        text.removesuffix("...\n(content truncated)"),
        found.read(where, values),
        sample.metadata,
        epoch=str(sample.epoch),
        target=sample.target if isinstance(sample.target, str) else json.dumps(sample.target),
        answer=sample.output.completion or next(iter(answers), ""),
        error="" if sample.error is None else "the sample failed",
        refused=stopped or "N" in values.values(),
    )


def _of_table(file: Path, metrics: Sequence[str]) -> ScoreFile:
    found, rows = ScoreFile(file.stem), read_rows(file, (), others=True, nested=True)
    columns = list(rows[0].cells)
    first = partial(_first, columns)
    named, scores = first(_ITEM), [name for name in metrics if name in columns]
    scores = scores or [name for name in _SCORE if name in columns][:1]
    if not named or not scores:
        missing = f"scores: {' or '.join(_SCORE)}, or a column that --metric names"
        missing = missing if named else f"items: {', '.join(_ITEM)}"
        raise UserError(
            f"{file} has no column of {missing}; it has {shortened(', '.join(columns))}"
        )
    text, answer, epoch = first(_TEXT), first(_ANSWER), first(_EPOCH)
    models = {str(row.cells["model"]) for row in rows} if "model" in columns else set()
    if len(models) > 1:
        raise UserError(
            f"{file} has scores of {len(models)} models, such as "
            f"{one_line(', '.join(sorted(models)))}; expected one model in each file"
        )
    found.name = one_line(min(models, default=found.name))
    for where, cells in rows:
        item = cells[named]
        if not _text(cells, named) or isinstance(item, bool | list | dict):
            raise UserError(f"{where}: {named} is {described(item)}; expected a text or number")
        fields = {name: own for name, own in cells.items() if name not in (named, *scores)}
        found.rows.append(
            Scored(
                _id(item),
                _text(cells, text),
                found.read(where, {name: cells[name] for name in scores}),
                fields,
                epoch=_text(cells, epoch),
                answer=_text(cells, answer),
                target=_text(cells, first(("target", "gold"))),
            )
        )
    return found


def _first(columns: Sequence[str], names: Iterable[str]) -> str:
    """The first of the names that is a column; empty if none is."""
    return next((name for name in names if name in columns), "")


def _text(cells: Mapping[str, object], column: str) -> str:
    """A cell as text; empty if it is missing."""
    cell = cells.get(column)
    return "" if cell is None or str(cell) == "nan" else _id(cell)


def _id(cell: object) -> str:
    """A cell as text: 7 and 7.0 are the same id as "7"."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
