"""The judged measurements of each model in the study."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
import pandas as pd

from interp.attribution.registry import find_method
from interp.errors import UserError
from interp.estimates.compute import CLUSTER
from interp.judging import EFFECTS, GIVEN, REINITIALIZED, SCORES
from interp.judging.metrics import LEAST_EFFECT, METRICS, share
from interp.judging.ranking import MetricValues, check_table, difference_table, judge, metric_table
from interp.judging.trials import CONTROL, Tables, Trials, trials_of
from interp.judging.verdicts import ADVISING, UNTESTED, verdict_table
from interp.prompts.systems import dependence_factor, installed_system
from interp.report.formatting import segment_label
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder


@dataclass(frozen=True)
class ModelResults:
    """The metrics of one model, and the verdicts on its methods."""

    model: str
    trials: tuple[Trials, ...]
    metrics: pd.DataFrame
    """The rows of `metric_table`."""
    checks: pd.DataFrame
    """The rows of `check_table`."""
    differences: pd.DataFrame
    """The rows of `difference_table`."""
    verdicts: pd.DataFrame
    """The rows of `verdict_table`, also for the scores in `partly`."""
    random_weights: pd.DataFrame
    """How often scores of the model with random weights find the segment with the largest effect
    in the model itself: rows of `metric_table`, none if the reinitialized model was omitted."""
    described: str
    """The prompts for which the metric used for advice is defined, and their clusters."""
    partly: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Rows of `metric_table` for scores of other tools that some judged prompts lack: these are
    judged on the others alone, beside the methods on the same prompts."""
    scored: Mapping[str, int] = field(default_factory=dict)
    """Number of judged prompts that have scores of another tool, by their name."""

    @property
    def prompts(self) -> int:
        """Number of judged prompts."""
        return _count(self.trials)


def segments_of(results: Sequence[ModelResults]) -> str:
    """The judged segments as a phrase, such as "premise 1, premise 2 and conclusion"."""
    groups = dict.fromkeys(trials.segments for result in results for trials in result.trials)
    listed = (", ".join(map(segment_label, group)) for group in groups)
    return ", or ".join(" and ".join(names.rsplit(", ", 1)) for names in listed)


def shares_of(model: str, trials: Sequence[Trials]) -> pd.DataFrame:
    """The compared segments' shares, one row per prompt, method and score.

    Columns are prompt_id, cluster, method, score, model, share and exact_share (the second
    segment's share of the two scores, or of the two Shapley values), and decides: 1 if the second
    segment was made to decide, 0 if the first was. If nothing is planted, the segment with the
    larger absolute Shapley value decides; NaN if these values differ by less than `LEAST_EFFECT`.
    There are no rows if no segments are compared.
    """
    parts = [rows for group in trials for rows in _shares(group)]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return table.assign(model=model)


def _shares(trials: Trials) -> Iterator[pd.DataFrame]:
    compared, shapley = trials.compared, trials.shapley
    if compared is None:
        return
    exact = share(shapley, *compared)
    first, second = np.abs(shapley[:, compared]).T
    decides = np.where(np.abs(second - first) < LEAST_EFFECT, np.nan, second > first)
    decides = np.where(np.isnan(trials.planted), decides, trials.planted > 0.5)
    rows = pd.DataFrame({"prompt_id": trials.prompt_ids, CLUSTER: trials.clusters})
    shares = share(trials.sizes, *compared)
    for contender, its_shares in zip(trials.contenders, shares, strict=True):
        if contender.score != CONTROL:
            columns = {"share": its_shares, "exact_share": exact, "decides": decides}
            yield rows.assign(**contender._asdict(), **columns)


def read_results(folder: StudyFolder) -> list[ModelResults]:
    """Every model with effects and scores (UserError: nothing has been measured yet)."""
    folder.require(EFFECTS, SCORES)
    results = [result for model in folder.record.models for result in _of_model(folder, model)]
    if not results:
        raise UserError(
            f"no prompt in {folder.folder} has effects and a score by every method; errors "
            f"are listed in {SCORES}/ and {EFFECTS}/"
        )
    return results


def _of_model(folder: StudyFolder, model: str) -> Iterator[ModelResults]:
    tables = tables_of(folder, model)
    everyone = _count(trials_of(tables))
    if not everyone:
        return
    given = given_scores(folder, model, tables)
    beside = {name: trials_of(_joined(tables, rows)) for name, rows in given.items()}
    scored = {name: _count(groups) * bool(len(given[name])) for name, groups in beside.items()}
    complete = [given[name] for name, count in scored.items() if count == everyone]
    trials = trials_of(_joined(tables, *complete))
    judgements = judge(trials)
    metrics, checks = metric_table(judgements), check_table(judgements)
    differences = difference_table(judgements)
    verdicts = verdict_table(metrics, checks, differences)
    advising = verdicts["metric"].iloc[0] if len(verdicts) else ADVISING[0]
    (judgement,) = (judged for judged in judgements if judged.metric.name == advising)
    with_effects = tables.coalition_values["prompt_id"].nunique()
    some = [name for name, count in scored.items() if 0 < count < everyone]
    parts = [_of_part(name, beside[name], checks) for name in some]
    partly, differences, verdicts = (
        pd.concat(pieces, ignore_index=True)
        for pieces in zip((metrics[:0], differences, verdicts), *parts, strict=True)
    )
    yield ModelResults(
        model=model,
        trials=tuple(trials),
        metrics=metrics,
        checks=checks,
        differences=differences,
        verdicts=verdicts,
        random_weights=_with_random_weights(folder, model),
        described=described(judgement, tables.cluster, with_effects),
        partly=partly,
        scored=scored,
    )


def _with_random_weights(folder: StudyFolder, model: str) -> pd.DataFrame:
    trials = trials_of(tables_of(folder, model, REINITIALIZED)) if folder.has(REINITIALIZED) else []
    if not trials:
        return pd.DataFrame()
    top = [metric for metric in METRICS if metric.name == ADVISING[0]]
    metrics = metric_table(judge(trials, top))
    return metrics[metrics["score"] != CONTROL]


def _count(trials: Sequence[Trials]) -> int:
    return sum(len(group.prompt_ids) for group in trials)


def _joined(tables: Tables, *scores: pd.DataFrame) -> Tables:
    return replace(tables, segment_scores=pd.concat([tables.segment_scores, *scores]))


def _of_part(name: str, trials: Sequence[Trials], checks: pd.DataFrame) -> list[pd.DataFrame]:
    """The metrics, differences and verdicts of one tool's scores, on the prompts that have them.

    The checks on all prompts tell the metric for verdicts.
    """
    judgements = judge(trials)
    metrics, differences = metric_table(judgements), difference_table(judgements)
    verdicts = verdict_table(metrics, checks, differences)
    used = check_table(judgements).set_index("metric")["used"]
    if len(verdicts) and not used[verdicts["metric"].iloc[0]]:
        verdicts["verdict"] = UNTESTED
    tables = metrics, differences, verdicts
    return [table[table["method"] == name] if len(table) else table for table in tables]


def given_scores(folder: StudyFolder, model: str, tables: Tables) -> dict[str, pd.DataFrame]:
    """The rows of other tools' scores on a model's prompts, by name; maybe none of a file."""
    if not folder.has(GIVEN):
        return {}
    run = folder.runs[GIVEN]
    rows = _of(run, "segment_scores", model, tables.prompts)
    scores = {str(name): its_rows for name, its_rows in rows.groupby("method", sort=False)}
    files = run.record.run.parameters["files"]
    names = files if isinstance(files, dict) else {}
    empty = (name for name in names if not any(f"{key}:".startswith(f"{name}:") for key in scores))
    return {**scores, **dict.fromkeys(empty, rows[:0])}


def described(judgement: MetricValues, cluster: str, with_effects: int) -> str:
    """For how many of the prompts with effects a metric is defined, and why not for the others."""
    defined, scored = judgement.defined.sum(), len(judgement.defined)
    clusters = len(set(compress(judgement.clusters, judgement.defined)))
    lacking = {judgement.metric.needs: scored - defined, "a score": with_effects - scored}
    reasons = ", ".join(f"{count} without {what}" for what, count in lacking.items() if count > 0)
    of_all = f" of {with_effects}" if defined < with_effects else ""
    others = f" ({reasons})" if reasons else ""
    return f"{defined}{of_all} prompts{others} from {clusters} clusters ({cluster})"


def tables_of(folder: StudyFolder, model: str, stage: str = SCORES) -> Tables:
    """A model's effects and the scores from one stage, on the prompts of that stage."""
    effects, scores = folder.runs[EFFECTS], folder.runs[stage]
    prompts = scores.table("prompts")
    rows = _of(scores, "segment_scores", model, prompts)
    for method in rows["method"].unique():
        find_method(str(method))  # or else it would count as another tool's
    name = effects.record.run.system
    system = installed_system(name)
    return Tables(
        segment_scores=rows,
        coalition_values=_of(effects, "coalition_values", model, prompts),
        prompts=prompts,
        cluster=dependence_factor(name) or "pair_id",
        ratio=effects.record.run.ratio,
        planted=None if system is None else system.planted_probability(model, prompts),
    )


def _of(run: RunFolder, table: str, model: str, prompts: pd.DataFrame) -> pd.DataFrame:
    rows = run.table(table)
    return rows[(rows["model"] == model) & rows["prompt_id"].isin(prompts["prompt_id"])]
