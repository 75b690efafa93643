"""The browser of pairs beside the page of a study: what all of its stages measured on each pair."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from interp.analysis.accuracy import whole_pairs
from interp.measuring.spec import spec_named
from interp.report.pairs import Browser, Number, Panel
from interp.results.given import JUDGED, judged_answers
from interp.results.measured import InFolder
from interp.results.result import result_class
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder

_IDS = ("prompt_id", "pair_id")


def study_browser(
    folder: StudyFolder,
    prompts: pd.DataFrame,
    answers: pd.DataFrame,
    *,
    cluster: str | None = None,
    numbers: Sequence[Number] = (),
    prefixed: Collection[str] = (),
) -> Browser:
    """The pairs of a study's page, with everything that its stages measured on them.

    `answers` are those of all models; stages of other prompts than `prompts` contribute nothing.
    The pairs' own `numbers` come before those of the stages. `prefixed` names the stages whose
    prompts have ids that begin with its name, as from `stacked`.
    """
    prompt_ids = set(prompts["prompt_id"])
    stages = []
    for name, run in folder.runs.items():
        prefix = f"{name}/" if name in prefixed else ""
        if run.tables() and not prompt_ids.isdisjoint(prefix + run.table("prompts")["prompt_id"]):
            of_measurement = result_class(spec_named(run.record.run.measurement))
            stages.append((prefix, of_measurement.of(run).browser()))

    def panels(shown_prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
        # A later stage may measure again what an earlier one measured, with more details.
        shown: set[tuple[str, str, tuple[tuple[str, Any], ...]]] = set()
        for prefix, stage in stages:
            asked = shown_prompts[shown_prompts["prompt_id"].str.startswith(prefix)]
            asked = asked.assign(**{name: asked[name].str.removeprefix(prefix) for name in _IDS})
            for pair, panel in stage.panels(asked) if len(asked) else ():
                key = (prefix + pair, panel.title, tuple(panel.of.items()))
                if key not in shown:
                    shown.add(key)
                    yield prefix + pair, panel

    joined = _joined([*numbers, *(n for prefix, stage in stages for n in _numbers(prefix, stage))])
    return Browser(prompts, answers, panels, joined, cluster)


def stacked(
    runs: Mapping[str, RunFolder], factor: str, values: Mapping[str, str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The prompts and the answers of several stages: whole pairs that all models answered.

    Ids are unique only within a stage, so here they begin with its name.
    `factor` is a column, added to the prompts, whose `values` by stage tell the stages apart.
    """
    prompts, answers = [], []
    for name, run in runs.items():
        judged = judged_answers(InFolder(run))
        asked = whole_pairs(run.table("prompts"), judged)
        ids = {column: f"{name}/" + asked[column] for column in _IDS}
        prompts.append(asked.assign(**ids, **{factor: values[name]}))
        answers.append(judged.assign(prompt_id=f"{name}/" + judged["prompt_id"])[JUDGED])
    return pd.concat(prompts, ignore_index=True), pd.concat(answers, ignore_index=True)


def _numbers(prefix: str, stage: Browser) -> Iterator[Number]:
    for number in stage.numbers:
        values = {prefix + pair: value for pair, value in number.values.items()}
        yield Number(number.name, number.of, values, number.headline)


def _joined(numbers: Sequence[Number]) -> tuple[Number, ...]:
    """Numbers of one name and of the same labels are one; what was measured first counts."""
    merged: dict[tuple[str, tuple[tuple[str, str], ...]], Number] = {}
    for new in numbers:
        key = (new.name, tuple(new.of.items()))
        before = merged.get(key, new)
        merged[key] = Number(new.name, new.of, {**new.values, **before.values}, before.headline)
    return tuple(merged.values())
