"""The items of each log that is compared: mean scores over epochs, and the metrics to compare.

A log is a folder of interp, or a file or folder that another tool wrote (`interp.stored.scores`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from interp.errors import UserError, one_line, shortened, unknown
from interp.files import reading
from interp.stored.scores import Scored, ScoreFile, read_scores


class Item(NamedTuple):
    """An item in one log."""

    first: Scored
    """What the log says about it, from its first epoch."""
    scores: dict[str, list[float]]
    """The scores of all epochs by metric; a filter's name follows after a comma."""

    def mean(self, metric: str) -> float:
        """The mean over epochs; NaN without any."""
        values = self.scores.get(metric)
        return sum(values) / len(values) if values else math.nan


@dataclass
class Side:
    """A log that is compared."""

    name: str
    path: Path
    items: dict[str, Item] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    """The metrics, each with its filter."""
    settings: Mapping[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    """What a reader must know before any number."""
    cluster: str = ""
    """The field that names dependent items, if the log is one of interp."""
    archive: Path | None = None


def read_sides(
    paths: Sequence[Path], *, metrics: Sequence[str], filters: Sequence[str], models: Sequence[str]
) -> list[Side]:
    """The logs in the given places.

    Raises:
        UserError: one cannot be read, holds several models, or has no filter of these names.
    """
    files = [_read(path, metrics, models) for path in paths]
    known = {row.filter for file, _ in files for row in file.rows}
    for name in filters:
        if name not in known:
            raise UserError(unknown("filter", name, sorted(filter(None, known))))
    tasks = any(len({row.task for row in file.rows}) > 1 for file, _ in files)
    sides = [
        _side(file, path, cluster, filters, tasks)
        for (file, cluster), path in zip(files, paths, strict=True)
    ]
    for name in [name for name, count in Counter(side.name for side in sides).items() if count > 1]:
        alike = [side for side in sides if side.name == name]
        for side, part in zip(alike, _told_apart([side.path for side in alike]), strict=True):
            side.name = f"{name} ({part})"
    return sides


def _told_apart(paths: Sequence[Path]) -> Sequence[str]:
    """The shortest part of each path by which all of them differ.

    Raises:
        UserError: two paths are the same.
    """
    parts = zip_longest(*(reversed(path.resolve().with_suffix("").parts) for path in paths))
    apart = [names for names in parts if len({*names}) == len(paths) and None not in names]
    if not apart:
        if len({path.resolve() for path in paths}) < len(paths):
            raise UserError(f"{paths[0]} is given twice; name each log once")
        apart = [tuple(map(str, paths))]
    return min(apart, key=lambda names: max(map(len, names)))


def is_own(path: Path) -> bool:
    """Whether a path is a folder that a command of interp wrote."""
    with reading(path):
        return any((path / name).exists() for name in ("run.json", "study.json"))


def _read(path: Path, metrics: Sequence[str], models: Sequence[str]) -> tuple[ScoreFile, str]:
    if not is_own(path):
        return read_scores(path, metrics), ""
    from interp.runs.folder import evaluating  # takes a while, for other logs in vain

    with evaluating(path):
        return _of_run(path, models)


_TEXTS = ("answer", "error")


def _of_run(folder: Path, models: Sequence[str]) -> tuple[ScoreFile, str]:
    """The judged answers in a folder of interp, and the factor of dependent prompts."""
    from interp.prompts.systems import dependence_factor
    from interp.studies.folder import answers_run

    run, table = answers_run(folder)
    names = list(run.models())
    chosen = [name for name in names if not models or {name, name.rpartition("/")[2]} & {*models}]
    if len(chosen) != 1:
        raise UserError(
            f"{folder} holds the models {shortened(', '.join(names))}; name one with --model"
        )
    found = ScoreFile(chosen[0], settings={"seed": str(run.record.run.seed)})
    answers = run.table(table, ["model", "prompt_id", "answer", "correct", "error"])
    answers = answers[answers["model"] == chosen[0]].set_index("prompt_id")
    if answers["correct"].isna().all():
        raise UserError(f"no answer of {chosen[0]} was judged, so there is nothing to compare")
    prompts: list[Any] = run.table("prompts").to_dict("records")
    answers = answers.reindex([row["prompt_id"] for row in prompts]).reset_index()
    for row, own in zip(prompts, answers.to_dict("records"), strict=True):
        judged = own["correct"] in (True, False)
        score = {"correct": float(own["correct"]) if judged else math.nan}
        texts = {name: own[name] for name in _TEXTS if isinstance(own[name], str)}
        one = Scored(row["prompt_id"], row["text"], score, row, target=row["gold"])
        found.rows.append(one._replace(**texts))
    if found.rows and run.unfinished():
        found.notes.append(f"stopped early: {shortened(run.unfinished()[0])}")
    return found, dependence_factor(run.record.run.system) or "pair_id"


def _side(file: ScoreFile, path: Path, cluster: str, filters: Sequence[str], tasks: bool) -> Side:
    side = Side(file.name, path, settings=file.settings, cluster=cluster, archive=file.archive)
    kept = {row.filter for row in file.rows}
    kept = kept & {*filters} or kept
    rows = [row for row in file.rows if row.filter in kept or not row.filter]
    of_metric: dict[str, set[str]] = {}
    for row in rows:
        for metric in row.scores.keys() - file.unread.keys():
            of_metric.setdefault(metric, set()).add(row.filter)
    seen, twice = set(), set()
    missing: Counter[str] = Counter()
    for row in rows:
        key = f"{row.task}/{row.item}" if tasks and row.task else row.item
        place = (key, row.epoch, row.filter)
        if place in seen:
            twice.add(key)
        seen.add(place)
        item = side.items.setdefault(key, Item(row, {}))
        for metric, those in of_metric.items():
            if metric in row.scores:
                name = metric if len(those) == 1 else f"{metric},{row.filter}"
                side.metrics[name] = row.filter
                if math.isnan(row.scores[metric]):
                    missing[name] += 1
                else:
                    item.scores.setdefault(name, []).append(row.scores[metric])
    for key in twice:
        del side.items[key]
    _tell(side, file, rows, twice, missing)
    if not side.items:
        raise UserError(f"{path} has no items to compare: {'; '.join(side.said)}")
    return side


def _tell(
    side: Side, file: ScoreFile, rows: Sequence[Scored], twice: Iterable[str], missing: Counter[str]
) -> None:
    """Note what is left out, averaged or incomplete in a log."""
    side.said += file.notes
    if names := sorted(twice):
        side.said.append(
            f"{len(names):,} ids are given twice and left out, such as {one_line(names[0], 40)}; "
            "if they are draws, number them in a column epoch"
        )
    for metric, example in file.unread.items():
        side.said.append(f"{one_line(metric)} is no number of an item, such as {example}")
    for metric, count in missing.items():
        side.said.append(f"{count:,} scores of {metric} are missing or NaN and left out")
    for what, count in (
        ("errors, which have no score and are left out", sum(bool(row.error) for row in rows)),
        ("refusals or missing answers, which count as scored", sum(row.refused for row in rows)),
    ):
        if count:
            side.said.append(f"{count:,} {what}")
    epochs = Counter(max(map(len, item.scores.values()), default=0) for item in side.items.values())
    epochs.pop(0, None)
    if epochs.keys() - {1}:
        numbers = ", ".join(
            f"{number} ({count:,} items)" for number, count in sorted(epochs.items())
        )
        side.said.append(f"scores are means over epochs or draws of each item: {numbers}")


def chosen_metrics(sides: Sequence[Side], metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The metrics to compare, each with its name in every log.

    Raises:
        UserError: the logs have no metric in common, and more than one of their own.
    """
    known = {
        name for side in sides for own in side.metrics for name in (own, own.partition(",")[0])
    }
    for name in metrics:
        if name not in known:
            raise UserError(unknown("metric", name, sorted(known)))
    of_side = [
        [own for own in side.metrics if not metrics or {own, own.partition(",")[0]} & {*metrics}]
        for side in sides
    ]
    shared = [own for own in of_side[0] if all(own in others for others in of_side)]
    if shared:
        return {own: (own,) * len(sides) for own in shared}
    if all(len(own) == 1 for own in of_side):
        names = tuple(own[0] for own in of_side)
        return {" and ".join(dict.fromkeys(names)): names}
    listed = "; ".join(
        f"{side.name}: {', '.join(own) or 'none'}{' (' * bool(side.said)}"
        f"{side.said[-1] if side.said else ''}{')' * bool(side.said)}"
        for side, own in zip(sides, of_side, strict=True)
    )
    raise UserError(
        f"the logs have no metric in common ({listed}); name one of each with --metric, such as "
        "--metric acc match, and of several filters one with --filter"
    )
