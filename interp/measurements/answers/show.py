"""Models' answers: probabilities of the next token, and generated text."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pandas as pd

from interp.analysis import accuracy
from interp.analysis.cautions.caution import OUTSIDE_OPTIONS, said_outside
from interp.analysis.cautions.collected import HALF
from interp.analysis.reading_tables import FEW_SIDES
from interp.analysis.readings import FORCED, FREE
from interp.console import echo
from interp.errors import UserError, visible
from interp.estimates.shown import ALL
from interp.measurements.answers.readings import OPTION_COLUMNS, reading_items
from interp.measurements.given import CHANGED
from interp.prompts.prompt_set import note_alone
from interp.report.glance import Difference, Opening, headline
from interp.report.page import FigureItem, Report, TableItem
from interp.report.pairs import Browser, Panel, Shaded, Text, by_pair, side_bars, with_sides
from interp.results.given import JUDGED
from interp.results.measured import ResultTables
from interp.results.result import Result, chosen
from interp.statistics.summaries import effective_number


class Answered(Result):
    """A result with models' answers; its page counts only complete pairs."""

    answered: ClassVar[str] = "answers"
    """Name of the table with the answers."""

    question = "How often do the models answer correctly?"

    @property
    def answers(self) -> pd.DataFrame:
        """The answers table (`interp.tables`): one row per prompt."""
        return self.table(self.answered)

    @property
    def option_probabilities(self) -> pd.DataFrame:
        """The option_probabilities table: one row per prompt and option."""
        return self.table("option_probabilities")

    def compare(self, a: str, b: str) -> pd.DataFrame:
        """Compare two models on shared prompts, as `interp compare` does.

        Rows are whole pairs (metric paired), all prompts, and those of each side (subset). Columns
        are those of its table: mean scores; their difference a - b, with its 95% interval and p,
        by cluster; the numbers of items that only `a`, or only `b`, answers correctly; the p-value
        of McNemar's exact test of these, which treats items as independent; and the difference
        that so many items show.

        Raises:
            UserError: there is no such model, or none of a model's answers was judged.
        """
        from interp.comparing.differences import compared_sides
        from interp.comparing.items import answers_log, side_of
        from interp.comparing.options import Comparing

        cluster, prompts, answers = self.cluster or "pair_id", self.prompts, self.answers
        logs = [
            answers_log(name, chosen(answers, "model", name), prompts, cluster=cluster, pairs=True)
            for name in (a, b)
        ]
        return compared_sides([side_of(log) for log in logs], Comparing()).differences.frame

    def report(self) -> Report:
        """The page about the result; it counts only complete pairs."""
        of_whole_pairs = type(self)(self.measured.whole_pairs(self.answered))
        return super(Answered, of_whole_pairs).report()

    def opening(self) -> Opening:
        """Accuracies, their differences, and how unequally prompts count."""
        cluster, plain = self.cluster or "pair_id", super().opening()
        unequally = unequal(self.table("prompts", ["prompt_id", cluster, "weight"]), cluster)
        numbers, extent = self._accuracies(), f"{plain.extent} {unequally}"
        models = numbers["model"].unique()
        differences = self._differences(*models) if len(models) == 2 else {}
        return replace(plain, numbers=numbers, differences=differences, extent=extent)

    def _accuracies(self) -> pd.DataFrame:
        """Accuracy over whole pairs, and on each side if there are few sides, with intervals."""
        prompts, cluster = self.prompts, self.cluster
        answers = self._own_answers[self._own_answers["correct"].notna()]
        sides = tuple(map(str, prompts["side"].unique()))
        by_pair = prompts.groupby("pair_id")
        alike = [
            name for name in (cluster, "weight") if name and by_pair[name].nunique().max() == 1
        ]
        cluster, weight = (name if name in alike else None for name in (cluster, "weight"))
        table = accuracy.accuracy_by(
            answers, prompts, factors=(), sides=sides, cluster=cluster, weight=weight
        )
        paired = ("paired",) if len(sides) > 1 else ()
        judged = answers["model"].unique()
        parts = []
        for measure in (*paired, *(sides if len(sides) <= FEW_SIDES else ())):
            rows = self._every_model(table[table["measure"] == measure], judged)
            name = _accuracy_name(measure)
            parts.append(headline(rows, name, value="accuracy", n="pairs", unit="pairs"))
        return pd.concat(parts)

    def _differences(self, a: str, b: str) -> Mapping[str, Difference]:
        """The differences in accuracy; none if a model has no judged answers."""
        try:
            table = self.compare(a, b)
        except UserError:
            return {}
        subsets = table["subset"].where(table["metric"] != "paired", "paired")
        sides = self.prompts["side"].unique()
        if len(sides) == 1:
            subsets = subsets.replace(ALL, sides[0])
        ends = table[["difference", "difference_low", "difference_high"]].itertuples(
            index=False, name=None
        )
        return dict(zip(map(_accuracy_name, subsets), ends, strict=True))

    def _every_model(self, rows: pd.DataFrame, judged: Collection[str]) -> pd.DataFrame:
        """The rows, plus a row with a note for each model without one."""
        models = pd.Index(self._own_answers["model"].unique(), name="model")
        no_pair = "no pair has several judged prompts"
        reasons = np.where(models.isin(judged), no_pair, "no answer was judged")
        table = rows.set_index("model").reindex(models)
        return table.assign(note=np.where(table["accuracy"].isna(), reasons, "")).reset_index()

    @cached_property
    def _own_answers(self) -> pd.DataFrame:
        return self.table(self.answered, JUDGED)

    @cached_property
    def _own_prompts(self) -> pd.DataFrame:
        return self.table("prompts", ["prompt_id", "pair_id", "side", "weight"])

    def _accuracy_item(self) -> TableItem:
        table = accuracy.accuracy_table(self._own_answers, self._own_prompts)
        return TableItem("accuracy_table", "Accuracy", table, self._note())

    def _reading_items(self) -> Iterator[TableItem]:
        options = self.table("option_probabilities", OPTION_COLUMNS)
        changed = self.table(CHANGED) if CHANGED in self.measured.names() else None
        yield from reading_items(
            self._own_answers, self.prompts, options, self.cluster, changed=changed
        )

    def _note(self) -> str:
        """How many of each model's prompts have no answer, and why, unless a caution says so."""
        rows = self._own_answers
        said = said_outside(self.cautions)
        notes = [*accuracy.notes_without_answer(rows, said=said), *accuracy.notes_unjudged(rows)]
        notes.append(note_alone(self._own_prompts["pair_id"]))
        return "; ".join(filter(None, notes))


def unequal(prompts: pd.DataFrame, cluster: str) -> str:
    """A sentence on clusters (a column of the prompts table) with unequal weights.

    It is empty if they count like 80% of their number or more, or so few that a caution says it
    (`sample_cautions`).
    """
    weights = prompts.groupby(cluster)["weight"].sum().to_numpy(dtype=float)
    effective = effective_number(weights)
    if not HALF * len(weights) <= effective < 0.8 * len(weights):
        return ""
    return (
        f"Weights differ: {len(weights):,} clusters ({cluster}) count like {effective:.1f} equal "
        "ones."
    )


def _accuracy_name(measure: str) -> str:
    """The name of a headline number: "paired accuracy", or the accuracy on a side."""
    return f"{measure.replace('_', '-')} accuracy"


_READINGS = {FREE: "replies right", FORCED: "forced choices right"}
"""Headline numbers beside accuracies, which say nothing of a model that replies with no option."""


class Scores(Answered):
    """Models' answers to prompts, from the probabilities of the next token."""

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Accuracy, one row per model; if prompts offer a choice, each reading of the answers."""
        plain = self._accuracy_item()
        if forced := self._forced:
            choices = plain.frame["model"].map(forced)
            plain.frame.insert(len(plain.frame.columns) - 1, "forced_choice_accuracy", choices)
        yield plain
        yield from self._reading_items()

    @cached_property
    def _forced(self) -> Mapping[str, object]:
        """The accuracy of forced choices of the models most of whose replies are no option."""
        outside = (c for c in self.cautions if c.kind == OUTSIDE_OPTIONS and c.voids)
        forced = {caution.model: caution.numbers.get("forced_accuracy") for caution in outside}
        return {model: accuracy for model, accuracy in forced.items() if accuracy is not None}

    def opening(self) -> Opening:
        """Accuracies; if a model replies with no option, its replies and its forced choices too."""
        plain = super().opening()
        if not self._forced:
            return plain
        read = self.derived()["accuracy_by_reading"]
        headlines = [
            headline(rows, name, value="accuracy", n="prompts", unit="prompts")
            for reading, name in _READINGS.items()
            for rows in [read[read["reading"] == reading]]
        ]
        return replace(plain, numbers=pd.concat([plain.numbers, *headlines]))

    def browser(self) -> Browser:
        """With the probabilities of the options."""
        return self.browsed(partial(option_panels, self.measured))

    def noted(self) -> Mapping[str, object]:
        """Each model's share of prompts without an answer, and its errors."""
        for note in accuracy.notes_unjudged(self._own_answers):
            echo(note)
        return super().noted()


class Completions(Answered):
    """Text that models generate after prompts, judged by the rules of the prompts' answers."""

    answered = "completions"

    @property
    def completions(self) -> pd.DataFrame:
        """The completions table: one row per prompt."""
        return self.table("completions")

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Accuracy of the texts, and how often each outcome occurred; one row per model."""
        yield self._accuracy_item()
        outcomes = accuracy.outcome_table(self.completions)
        yield TableItem("outcome_table", "Answers in the texts", outcomes)
        if "thoughts" in self.measured.names():
            thoughts = accuracy.thought_table(self.table("thoughts"))
            yield TableItem("thought_table", "Thoughts before the answer", thoughts)

    def browser(self) -> Browser:
        """With the generated texts, and thoughts if there are any."""
        return self.browsed(partial(text_panels, self.measured))

    def _note(self) -> str:
        return note_alone(self._own_prompts["pair_id"])


def option_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The probability of each option, as bars for each side; none if options were not read."""
    if "option_probabilities" not in measured.names():
        return
    columns = ["model", "prompt_id", "option", "probability"]
    rows = measured.table("option_probabilities", columns, prompts=prompts["prompt_id"])
    title, shown = "Probabilities of the options", with_sides(rows, prompts)
    note = "Summed probability of the texts or first tokens with which an answer may begin."
    yield from side_bars(title, shown, ["model"], label="option", value="probability", note=note)


def text_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The texts that models generated, and their thoughts, if any."""
    ids = prompts["prompt_id"]
    rows = measured.table("completions", ["model", "prompt_id", "completion"], prompts=ids)
    for pair, labels, members in by_pair(with_sides(rows, prompts), ["model"]):
        texts = [
            Text(str(side), [visible(text) if isinstance(text, str) else ""], [float("nan")])
            for side, text in zip(members["side"], members["completion"], strict=True)
        ]
        yield pair, Shaded("Generated text", labels, texts)
    if "thoughts" not in measured.names():
        return
    columns = ["model", "prompt_id", "draw", "before", "sentences", "after"]
    thoughts = measured.table("thoughts", columns, prompts=ids)
    for pair, labels, members in by_pair(with_sides(thoughts, prompts), ["model", "draw"]):
        texts = [
            Text(str(row["side"]), pieces, [float("nan")] * len(pieces))
            for row in members.dropna(subset="sentences").to_dict("records")
            if (pieces := [p for p in (row["before"], *row["sentences"], row["after"]) if p])
        ]
        yield pair, Shaded("Thought", labels, texts)
