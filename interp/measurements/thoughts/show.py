"""Thoughts: how much of the effect of prompts on a model's answers passes through its thoughts."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from interp.choices import ALL
from interp.estimates.pictures import curve
from interp.estimates.shown import Estimated
from interp.measurements.thoughts import tables
from interp.report import pairs
from interp.report.formatting import heading
from interp.report.glance import Opening, headline, with_interval
from interp.report.page import FigureItem, TableItem
from interp.results.measured import ResultTables
from interp.results.result import Result, errors_by_model
from interp.statistics.summaries import grouped
from interp.tables import factors_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MEDIATION = """A donor replaces one segment of a prompt, or all. total: how far this moves the
log-odds of the answer, including its effect through the thought (root mean square over prompts, in
logits). share: how much of this effect passes through the thought. share is 1 if the answer follows
the thought whatever the premises say, and 0 if the answer follows the premises whatever the thought
says. For share_own, the thought is exchanged under the prompt's own premises, and for share_other,
under the changed premises. They differ if premises and thought interact; share is their mean.
Brackets (_low, _high): 95% intervals, clustered by {cluster} (by donor for share_other), which
include the variation between draws of the thought. Donors of kind counterpart are the other side of
the prompt's pair."""

_GROUPS = """Mediated shares for each value of a factor, with all segments exchanged. Many groups
are compared, so a single group may stand out by chance."""

_GROUP = "value of the factor"
"""A column that no table has."""

_HEADLINES = {
    "whole": "accuracy after its thought",
    "direct": "accuracy without a thought",
    "filler": "accuracy after filler",
}
"""The names of headline numbers, by reading."""


class ThoughtEffects(Result):
    """The effects of models' thoughts on their answers."""

    question = "Do answers come from the premises or from the thought?"
    framed = "thought_effects"

    @property
    def effects(self) -> pd.DataFrame:
        """The thought_effects table: one row per prompt, donor and segment."""
        return self.table("thought_effects")

    def mediation(self) -> pd.DataFrame:
        """One row per model, kind of donor, and segment: total effect and mediated shares."""
        return tables.mediation_table(self._products, self.prompts, cluster=self._cluster)

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Mediated shares, answers by reading, early answers, effects of sentences, and groups."""
        if self._answers.empty:
            return
        table = self.mediation()
        title = "How much of an effect on the answer passes through the thought"
        shown = table[tables.CELL].copy()
        for name in ("total", *tables.SHARES):
            ends = table[[name, f"{name}_low", f"{name}_high"]].itertuples(index=False)
            shown[name] = [with_interval(*row) for row in ends]
        narrow = [(title, shown.join(table["prompts"]))]
        note = _MEDIATION.format(cluster=self._cluster)
        yield TableItem("mediation_table", title, table, note, narrow)
        yield from self.declared_items()
        trials = tables.early_trials(self._answers, self.prompts)
        early = Estimated(tables.EARLY, self.clustered(trials))
        draw = partial(_curves, early.frame)
        yield FigureItem("early_answers", tables.EARLY.title, draw, early.note)
        yield replace(early.item, narrow=[], folded=True)
        groups = self._groups
        if len(groups):
            title = "Mediated shares by group of prompts"
            yield TableItem("group_table", title, groups, _GROUPS, narrow=[])

    def opening(self) -> Opening:
        """The mediated share of each model, its accuracy by reading, and early answers."""
        plain = super().opening()
        if self._answers.empty:
            return plain
        readings = self.estimated[0].frame
        parts = [("mediated share", "share", _of_all(self.mediation()))]
        for name, words in _HEADLINES.items():
            parts.append((words, "accuracy", readings[readings["reading"] == name]))
        counts = {"n": "prompts", "unit": "prompts"}
        headlines = [
            headline(rows, words, value=of, interval=(f"{of}_low", f"{of}_high"), **counts)
            for words, of, rows in parts
        ]
        numbers = pd.concat(headlines, ignore_index=True)
        figure = next((item for item in self.figures if item.name == "early_answers"), None)
        return replace(plain, numbers=numbers, figure=figure)

    def browser(self) -> pairs.Browser:
        """With thoughts by sentence, and answers after parts and replacements of thoughts."""
        numbers = (*thought_numbers(self.measured), *self.links())
        return self.browsed(partial(thought_panels, self.measured), numbers)

    def noted(self) -> Mapping[str, object]:
        """Errors, and numbers of thoughts that never ended."""
        failed = self.table("thought_answers", ["model", "prompt_id", "error"])
        draws = self.table("thought_effects", ["model", "draws", "draws_asked"])
        sums = draws.groupby("model", sort=False)[["draws", "draws_asked"]].sum()
        missing = 1 - sums["draws"] / sums["draws_asked"]
        numbers = dict(errors_by_model(failed))
        for model, share in missing.items():
            errors = numbers.get(str(model), {})
            assert isinstance(errors, dict)
            numbers[str(model)] = {**errors, "draws_without_end": float(share)}
        return numbers

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """Answers by reading, and effects of sentences."""
        answers, prompts = self._answers, self.prompts
        if answers.empty:
            return ()
        readings = tables.reading_trials(answers, prompts)
        sentences = tables.sentence_trials(self.table("sentence_effects"), answers, prompts)
        each = ((tables.READING, readings), (tables.SENTENCES, sentences))
        return tuple(Estimated(table, self.clustered(trials)) for table, trials in each)

    @cached_property
    def _answers(self) -> pd.DataFrame:
        answers = self.table("thought_answers")
        return answers[answers["error"] == ""]

    @cached_property
    def _products(self) -> pd.DataFrame:
        return tables.effect_products(self.effects)

    @property
    def _cluster(self) -> str:
        return self.cluster or "pair_id"

    @cached_property
    def _groups(self) -> pd.DataFrame:
        """Mediated shares by factor and value, of factors with up to ten values."""
        prompts = self.prompts
        of_all, parts = _of_all(self._products), []
        for factor in ("side", *factors_of(prompts)):
            if 1 < prompts[factor].nunique() <= 10:
                # Under its own name, a factor could replace a column of the table.
                grouped_prompts = prompts.assign(**{_GROUP: prompts[factor]})
                table = tables.mediation_table(
                    of_all, grouped_prompts, cluster=self._cluster, by=[_GROUP]
                )
                table.insert(1, "factor", factor)
                parts.append(table.rename(columns={_GROUP: "value"}))
        fixed = ["donor_kind", "segment"]
        return pd.concat(parts, ignore_index=True).drop(columns=fixed) if parts else pd.DataFrame()


def _of_all(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows about an instance that replaces all segments."""
    return rows[(rows["segment"] == ALL) & (rows["donor_kind"] == "instance")]


def _curves(table: pd.DataFrame) -> "Axes":
    from interp.report.figures.style import panel_a_model

    lines = {number.name: heading(number.name) for number in tables.EARLY.numbers}
    return panel_a_model(
        table, lambda rows, ax: curve(tables.EARLY, rows, x="percent_read", lines=lines, ax=ax)
    )


_SENTENCES = """The first thought that ended. Change in the logit of the correct answer minus that
of the other answer: positive where the sentence supports the correct answer. left_out: the sentence
is removed; exchanged: replaced by another draw's; resampled: with it against without it."""

_EARLY = """The answer if the model must answer after its first sentences: the log-odds of the
correct answer, in logits. The last column of a draw is its whole thought."""

_READINGS = """Answers after whole thoughts and after texts in their place, by draw: the log-odds of
the correct answer, in logits."""

_TOTAL, _THROUGH = "total effect", "effect through the thought"


def thought_panels(
    measured: ResultTables, prompts: pd.DataFrame
) -> Iterator[tuple[str, pairs.Panel]]:
    """Thoughts by sentence, early answers, and answers after replacements of the thought."""
    ids = prompts["prompt_id"]
    sentences = pairs.with_sides(measured.table("sentence_effects", prompts=ids), prompts)
    for pair, of, group in pairs.by_pair(sentences, ["model"]):
        for measure in tables.EFFECTS:
            texts = []
            for side, rows in group.sort_values("sentence").groupby("side", sort=False):
                said, values = [f"{text} " for text in rows["text"]], rows[measure].astype(float)
                texts.append(pairs.Text(str(side), said, values.tolist()))
            labels = {**of, "measure": measure}
            yield pair, pairs.Shaded("Thought by sentence", labels, texts, note=_SENTENCES)
    answers = pairs.with_sides(measured.table("thought_answers", prompts=ids), prompts)
    answers = answers[answers["error"] == ""]
    early = answers[answers["reading"].isin(["empty", "first", "whole"])]
    for pair, of, group in pairs.by_pair(early, ["model", "side"]):
        yield pair, _early(group, of)
    readings = answers[answers["reading"].isin(tables.READINGS)]
    for pair, of, group in pairs.by_pair(readings, ["model"]):
        draws = ["" if pd.isna(draw) else f"{draw:.0f}" for draw in group["draw"]]
        values = group["value"].astype(float)
        each = zip(group["side"], group["reading"], draws, group["answer"], values, strict=True)
        cells = list(map(list, each))
        columns = ["side", "text before the answer", "draw", "answer", "log-odds"]
        yield pair, pairs.Table("Readings", of, columns, cells, note=_READINGS)


def _early(rows: pd.DataFrame, labels: dict[str, str]) -> pairs.Grid:
    values = rows.pivot_table(index="draw", columns="sentence", values="value", dropna=False)
    answers = rows.pivot_table(index="draw", columns="sentence", values="answer", aggfunc="first")
    answers = answers.reindex(index=values.index, columns=values.columns).fillna("")
    draws = [f"draw {draw:.0f}" for draw in values.index]
    counts = [f"{count:.0f} sentences" for count in values.columns]
    cells, words = values.to_numpy(dtype=float).tolist(), answers.to_numpy().tolist()
    return pairs.Grid("Early answers", labels, draws, counts, cells, words, note=_EARLY)


def thought_numbers(measured: ResultTables) -> Iterator[pairs.Number]:
    """Means over a pair of effects, total and through the thought."""
    prompts = measured.table("prompts", ["prompt_id", "pair_id"])
    effects = measured.table("thought_effects")
    names = ("own", "changed_under_other", "own_under_other")
    own, changed, other = (effects[name].map(_mean).astype(float) for name in names)
    effects = effects.assign(**{_TOTAL: own - changed, _THROUGH: own - other})
    for of, rows in grouped(effects, ["model", "donor_kind", "segment"]):
        labels = {name: str(value) for name, value in of.items()}
        for name in (_TOTAL, _THROUGH):
            headline = "mediated share" if labels["segment"] == "all" and name == _TOTAL else ""
            yield pairs.Number(
                name, labels, pairs.mean_by_pair(rows, prompts, name), headline=headline
            )


def _mean(values: object) -> float:
    numbers = np.asarray(values, dtype=float) if values is not None else np.array([])
    return float(numbers.mean()) if numbers.size else float("nan")
