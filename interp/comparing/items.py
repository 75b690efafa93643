"""The items of each log that is compared: mean scores over epochs, and the metrics to compare.

A log is a folder of interp, or a file or folder that another tool wrote (`interp.stored.scores`).
"""

import math
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from interp.comparing.options import Comparing
from interp.errors import UserError, one_line, shortened, unknown
from interp.files import reading
from interp.stored.scores import Scored, ScoreFile, read_scores

if TYPE_CHECKING:
    from interp.runs.folder import RunFolder


PAIRED = "paired"
"""The metric of whole pairs: whether all prompts of one are answered correctly."""


class Side(NamedTuple):
    """A log that is compared."""

    log: ScoreFile
    items: dict[str, Scored]
    """What the log says about each item, from its first epoch."""
    scores: pd.DataFrame
    """Means over the epochs of each item by metric; a filter's name follows after a comma."""
    filters: dict[str, str]
    """The filter of each metric."""

    @property
    def name(self) -> str:
        """The model's name or, without one, the file's."""
        return self.log.name


def read_sides(paths: Sequence[Path], options: Comparing) -> list[Side]:
    """The logs in the given places (UserError: one cannot be read, or lacks what options name)."""
    ours = [is_own(path) for path in paths]
    alone = len(paths) == 1 and all(ours)
    if alone:  # two models of one folder
        paths, ours = [*paths] * 2, [True] * 2
    names, folders = options.model, sum(ours)
    if len(names) not in {0, min(1, folders), folders}:
        raise UserError(
            f"got {len(names)} names of models for {folders} folders of interp; expected one, or "
            "one for each folder"
        )
    wanted = iter(names if len(names) == folders else [*names, None][:1] * folders)
    logs = [
        _of_run(path, next(wanted), place if alone else None, pairs=all(ours))
        if is_ours
        else read_scores(path, options.metric)
        for place, (path, is_ours) in enumerate(zip(paths, ours, strict=True))
    ]
    filters = {row.filter for log in logs for row in log.rows}
    for name in options.filter:
        if name not in filters:
            raise UserError(unknown("filter", name, sorted(filter(None, filters))))
    located = [(path.resolve(), log.name) for path, log in zip(paths, logs, strict=True)]
    if again := [path for path, name in located if located.count((path, name)) > 1]:
        raise UserError(f"{again[0]} is given twice; name each log once, or two of its models")
    for name in {log.name for log in logs}:
        same = [number for number, log in enumerate(logs) if log.name == name]
        if len(same) > 1:
            for number, part in zip(same, _told_apart([paths[n] for n in same]), strict=True):
                logs[number].name = f"{name} ({part})"
    tasks = any(len({row.task for row in log.rows}) > 1 for log in logs)
    return [side_of(log, options.filter, tasks) for log in logs]


def _told_apart(paths: Sequence[Path]) -> Sequence[str]:
    """The shortest part of each path by which all of them differ."""
    parts = zip_longest(*(reversed(path.resolve().with_suffix("").parts) for path in paths))
    apart = [names for names in parts if len({*names}) == len(paths) and None not in names]
    return min(apart or [tuple(map(str, paths))], key=lambda names: max(map(len, names)))


def is_own(path: Path) -> bool:
    """Whether a path is a folder that a command of interp wrote."""
    with reading(path):
        return any((path / name).exists() for name in ("run.json", "study.json"))


def _of_run(folder: Path, name: str | None, place: int | None, *, pairs: bool) -> ScoreFile:
    """A model's judged answers: the one with this name, at this place of two, or the only one."""
    from interp.prompts.prompt_set import note_alone
    from interp.prompts.systems import dependence_factor
    from interp.runs.folder import evaluating
    from interp.studies.folder import answers_run, model_named

    with evaluating(folder):
        run, table = answers_run(folder)
        models = [*run.models()]
        if name is not None:
            model = model_named(run, name)
        else:
            model = models[place or 0] if len(models) == (1 if place is None else 2) else None
        if model is None:
            absent = "" if name is None else f", and {one_line(name)} is not among them"
            listed = shortened(", ".join(models), 200)
            raise UserError(f"{folder} holds the models {listed}{absent}; name one with --model")
        answers = run.table(table, ["model", "prompt_id", "answer", "correct", "error"])
        log = answers_log(
            model,
            answers[answers["model"] == model],
            run.table("prompts"),
            cluster=dependence_factor(run.record.run.system) or "pair_id",
            pairs=pairs,
        )
        log.settings["seed"] = str(run.record.run.seed)
        log.said += objections(run, model)
        log.said += filter(None, [note_alone(run.table("prompts")["pair_id"])])
        log.said += [f"stopped early: {shortened(line)}" for line in run.unfinished()[:1]]
        return log


def objections(run: "RunFolder", model: str) -> list[str]:
    """What a careful reader would object to in a model's answers."""
    from interp.analysis.cautions.caution import CONSTANT, OUTSIDE_OPTIONS
    from interp.results.given import cautions_about
    from interp.results.measured import InFolder

    kinds = OUTSIDE_OPTIONS, CONSTANT
    raised = cautions_about(InFolder(run))
    return [caution.text for caution in raised if caution.model == model and caution.kind in kinds]


def answers_log(
    model: str, answers: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str, pairs: bool
) -> ScoreFile:
    """A model's judged answers (tables of `interp.tables`), an item for each prompt.

    With `pairs`, the first prompt of a whole pair also has the score `PAIRED`.
    """
    if answers["correct"].isna().all():
        raise UserError(f"no answer of {model} was judged, so there is nothing to compare")
    words = ["answer", "correct", "error"]
    judged = prompts.drop(columns=words, errors="ignore")
    judged = judged.join(answers.set_index("prompt_id")[words], on="prompt_id")
    judged[words] = judged[words].astype({"correct": float}).fillna({"answer": "", "error": ""})
    of_pair = judged.groupby("pair_id")["correct"]
    complete = of_pair.transform("count") == of_pair.transform("size")
    several, again = (judged["pair_id"].duplicated(keep=keep) for keep in (False, "first"))
    judged[PAIRED] = of_pair.transform("min").where(complete & several & ~again)
    log = ScoreFile(model, cluster=cluster, weight="weight")
    for row in judged.to_dict("records"):
        fields = {str(name): row[name] for name in prompts}
        scores = {"correct": row["correct"]}
        if pairs and not math.isnan(row[PAIRED]):
            scores[PAIRED] = row[PAIRED]
        outcome: dict[str, Any] = {"target": row["gold"], "answer": row["answer"]}
        outcome["failed"] = row["error"] != ""
        log.rows.append(Scored(row["prompt_id"], row["text"], scores, fields, **outcome))
    return log


def side_of(log: ScoreFile, filters: Sequence[str] = (), tasks: bool = False) -> Side:
    """The items of a log with their mean scores; what it lacks is noted."""
    rows = pd.DataFrame(log.rows, columns=Scored._fields, dtype=object)
    if wanted := {*filters} & {*rows["filter"]}:
        rows = rows[rows["filter"].isin({*wanted, ""})]
    tasked = (rows["task"] + "/" + rows["item"]).str.removeprefix("/")
    rows.index = pd.Index(tasked if tasks else rows["item"])
    draws = pd.MultiIndex.from_arrays([rows.index, rows["epoch"], rows["filter"]])
    twice = {*rows.index[draws.duplicated(keep=False)]}
    first = rows[~rows.index.duplicated() & ~rows.index.isin(twice)]
    items = dict(zip(first.index, map(Scored._make, first.to_numpy()), strict=True))
    scores = pd.DataFrame([*rows["scores"]], rows.index, dtype=float)
    scores = scores.drop(columns=[*log.unread], errors="ignore")
    failed = scores.isna().all(axis=1) & rows["failed"].astype(bool)
    scores, of_filter = scores[~failed], rows["filter"][~failed]
    keys = [scores.index, of_filter]
    by_filter: Any = scores.groupby(keys, sort=False).mean().unstack(sort=False)
    means: pd.DataFrame = by_filter.dropna(axis=1, how="all")
    several = means.columns.get_level_values(0).duplicated(keep=False)
    filter_of: dict[str, str] = {}
    notes: dict[str, Any] = {}
    for (metric, filter_), more in zip([*means.columns], several, strict=True):
        name = f"{metric},{filter_}" if more else str(metric)
        filter_of[name], values = filter_, scores.loc[(of_filter == filter_).to_numpy(), metric]
        if metric != PAIRED:  # which only the first prompt of a pair has
            notes[f"scores of {name} are missing or NaN and are left out"] = values.isna().sum()
        notes |= _sentinels(name, values)
    again = f"ids are given twice and left out, such as {one_line(min(twice, default=''), 40)}; "
    notes |= {
        "errors, which have no score and are left out": failed.sum(),
        again + "if they are draws, number them in a column epoch": len(twice),
        "refusals or missing answers, which count as scored": rows["refused"].sum(),
    }
    log.said += [f"{count:,} {what}" for what, count in notes.items() if count]
    scored = scores.notna().any(axis=1).groupby(keys).sum()
    epochs = scored.groupby(level=0).max().reindex([*items]).value_counts().sort_index()
    if {*epochs.index} - {0, 1}:
        numbers = ", ".join(f"{n:g} ({count:,} items)" for n, count in epochs.items() if n)
        log.said.append(f"scores are means over epochs or draws of each item: {numbers}")
    log.said += [
        f"{one_line(metric)} is no number of an item, such as {example}"
        for metric, example in log.unread.items()
    ]
    if not items:
        raise UserError(f"{log.name} has no items to compare: {'; '.join(log.said)}")
    means.columns = pd.Index([*filter_of], dtype=object)
    return Side(log, items, means.reindex([*items]), filter_of)


def _sentinels(metric: str, scores: pd.Series) -> dict[str, int]:
    """Counts of one or two values, such as -1 and 99, that stand beside yes and no alone."""
    counts = scores.value_counts()
    usual = counts.index.isin([0, 1, 100])
    marks, sure = counts[~usual], usual.sum() > 1
    odd = (marks.index % 1 == 0) & ((marks.index < 0) | (sure & (marks.index >= 9)))
    if not usual.any() or len(marks) > 2 or not odd.all():
        return {}
    note = f"scores of {metric} are {{:g}} beside yes and no; remove those that mark a missing one"
    return {note.format(value): count for value, count in marks.items()}


def chosen_metrics(sides: Sequence[Side], metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The metrics to compare, each with its name in every log; others are noted."""
    known = {name for side in sides for full in side.filters for name in (full, full.split(",")[0])}
    for name in metrics:
        if name not in known:
            raise UserError(unknown("metric", name, sorted(known)))
    of_side = [
        [full for full in side.filters if not metrics or {full, full.split(",")[0]} & {*metrics}]
        for side in sides
    ]
    shared = [metric for metric in of_side[0] if all(metric in others for others in of_side)]
    if not shared and all(len(kept) == 1 for kept in of_side):
        names = tuple(kept[0] for kept in of_side)
        return {" and ".join(dict.fromkeys(names)): names}
    if not shared:
        listed = "; ".join(
            f"{side.name}: {', '.join(kept) or 'none'}"
            + "".join(f" ({note})" for note in side.log.said[-1:])
            for side, kept in zip(sides, of_side, strict=True)
        )
        raise UserError(
            f"the logs have no metric in common ({listed}); name one of each with --metric, such "
            "as --metric acc match, and of several filters one with --filter"
        )
    for side, kept in zip(sides, of_side, strict=True):
        if others := sorted({*kept} - {*shared}):
            side.log.said.append(f"not compared, since not every log has them: {', '.join(others)}")
    return {metric: (metric,) * len(sides) for metric in shared}
