"""Display of the exact effects of segments."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pandas as pd

from interp.analysis.constant import MOSTLY
from interp.choices import COUNTERPART
from interp.console import counted, echo
from interp.estimates.declared import Mean, Plain, Table
from interp.estimates.shown import Estimated
from interp.measurements.attribution import largest
from interp.measurements.attribution.segments import (
    EFFECT_COLUMNS,
    one_answer,
    same_answers,
    segment_effect_table,
)
from interp.measurements.effects.panels import (
    context_panels,
    effect_numbers,
    effect_panels,
)
from interp.report.formatting import mean_with_sd, segment_label
from interp.report.glance import MOST_NUMBERS, Opening, headline
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser, Panel
from interp.results.result import Result, errors_by_model, figure_of
from interp.statistics.means import cluster_mean_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SIZE = "shapley_size: mean over prompts of the absolute Shapley value, whatever its direction."


_LARGEST_NOTE = (
    "Effects are compared within a prompt, by the size of the mean Shapley value over donors. "
    "within the donors' spread: the largest does not clearly lead every other segment, given the "
    "spread over donors (Student's t, 95%); a counterpart is one donor, which has no spread."
)


CONTEXT = Table(
    name="context_table",
    title="Scores by methods of context attribution, in logits: means over prompts",
    text="Computed from the values of coalitions that effects measure, with other instances as "
    "donors.",
    by=["model", "method", "segment"],
    measured="context_scores",
    numbers=[
        Mean(
            "score",
            "mean over prompts",
            "logits",
            "positive: the segment supports the answer",
            ends=("low", "high"),
        ),
        Plain("size", "mean of the absolute score", "logits", why="score"),
    ],
    trials="prompts",
)

_OF, _IN = "effect of ", " in logits"
"""How the names of headline numbers begin and end."""

_BY_KIND = {"instance": "other instances as donors", COUNTERPART: "counterparts as donors"}


class SegmentEffects(Result):
    """The effect of each segment on models' answers."""

    question = "How much does each segment change the answer, in logits?"

    def opening(self) -> Opening:
        """Mean Shapley values, in logits, of the segments with the largest effects."""
        effects = self.table("segment_effects", EFFECT_COLUMNS)
        effects = effects[(effects["error"] == "") & (effects["other_segment"].fillna("") == "")]
        effects = effects[effects["donor_kind"] == effects["donor_kind"].iloc[:1].max()]
        cluster = self.cluster or "pair_id"
        # As in `segment_effect_table`, each prompt counts once.
        rows = effects.merge(self.prompts[["prompt_id", cluster]], on="prompt_id").assign(weight=1)
        sizes = rows["shapley"].abs().groupby(rows["segment"]).mean().sort_values(ascending=False)
        parts = []
        for segment in sizes.index[:MOST_NUMBERS]:
            own = rows[rows["segment"] == segment]
            table = cluster_mean_table(own, value="shapley", cluster=cluster, weight="weight")
            name = f"{_OF}{segment_label(segment)}{_IN}"
            parts.append(headline(table, name, value="mean", n="trials", unit="prompts"))
        plain = replace(super().opening(), sentences=list(self._findings()))
        if not parts:
            return plain
        numbers = pd.concat(parts, ignore_index=True)
        return replace(plain, numbers=numbers, figure=_figure(numbers))

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Mean effects, one row per model, kind of donor, and segment or pair of segments."""
        effects = self.table("segment_effects", EFFECT_COLUMNS)
        table = segment_effect_table(effects)
        alone = table[table["other_segment"] == ""]
        numbers = pd.DataFrame(
            {
                "shapley": mean_with_sd(alone["shapley"], alone["shapley_sd"]),
                "shapley_size": [f"{size:.3f}" for size in alone["shapley_size"]],
                "leave_one_out": mean_with_sd(alone["leave_one_out"], alone["leave_one_out_sd"]),
            },
            index=alone.index,
        ).where(alone["note"] == "", "")
        shown = alone[["model", "donor_kind", "segment", "prompts"]].join(numbers)
        if (alone["note"] != "").any():
            shown["note"] = alone["note"]
        title = "Effects of segments on the answer, in logits: mean (sd) over prompts"
        note = " ".join([_SIZE, *self._cancelled(effects)])
        yield TableItem("segment_effect_table", title, table, note, [(title, shown)])
        yield from self._largest_items()
        yield from self.declared_items()
        for one in self.estimated:
            title, draw = "Scores by methods of context attribution", partial(_context, one.frame)
            yield FigureItem("context_scores", title, draw, one.note)

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The scores by methods of context attribution, if the run names any."""
        scores = self._context
        if scores.empty:
            return ()
        trials = scores.merge(self.prompts[["prompt_id", "pair_id"]], on="prompt_id")
        trials["size"] = trials["score"].abs()
        return (Estimated(CONTEXT, self.clustered(trials)),)

    @cached_property
    def _context(self) -> pd.DataFrame:
        """The scores by the methods that the run names; empty without any."""
        named = self.measured.about.parameters.get("context")
        return self.table("context_scores") if named else pd.DataFrame()

    def _findings(self) -> Iterator[str]:
        """Which segment has the largest effect, for each model and kind of donor."""
        for (model, kind), own in self._largest.groupby(["model", "donor_kind"], sort=False):
            yield largest.sentence(own, f"{model}, {_BY_KIND[str(kind)]}", "effect", self.prompts)

    def _largest_items(self) -> Iterator[TableItem]:
        """For how many pairs each segment has the largest effect."""
        by, table = ["model", "donor_kind"], self._largest
        if len(table):
            title, said = "Which segment has the largest effect?", list(self._findings())
            yield largest.item(table, said, by=by, title=title, note=_LARGEST_NOTE)

    @cached_property
    def _largest(self) -> pd.DataFrame:
        find, columns = largest.largest_effects, largest.VALUE_COLUMNS
        by = ["model", "donor_kind"]
        return largest.largest_of(self, "coalition_values", columns, find, by=by)

    def plot(self) -> "Figure":
        """The mean Shapley value of each segment, with one standard deviation over prompts."""
        from interp.report.figures.points import interval_points

        table = segment_effect_table(self.table("segment_effects", EFFECT_COLUMNS))
        table = table[(table["other_segment"] == "") & (table["donor_kind"] == "instance")]
        mean, sd = table["shapley"], table["shapley_sd"]
        named = table.assign(
            segment=table["segment"].map(segment_label), low=mean - sd, high=mean + sd
        )
        return figure_of(
            interval_points(
                named, x="shapley", y="segment", hue="model", n="prompts", interval=("low", "high")
            )
        )

    def _cancelled(self, effects: pd.DataFrame) -> Iterator[str]:
        """A sentence for each model and kind of donor whose effects cancel in the mean."""
        same = one_answer(effects)
        for row in same[same["same"] >= MOSTLY * same["prompts"]].to_dict("records"):
            yield (
                f"{row['model']} gives one answer to {row['same']:,} of "
                f"{counted(row['prompts'], 'prompt')}, so the effects of other instances cancel in "
                "the mean; shapley_size is their mean size."
            )
        same = same_answers(effects, self.prompts)
        for row in same[same["same"] > 0].to_dict("records"):
            yield (
                f"{row['model']} gives the same answer to both sides in {row['same']:,} of "
                f"{counted(row['pairs'], 'pair')}, where the effects of counterparts on both sides "
                "cancel in the mean; shapley_size is their mean size."
            )

    def context(self, *methods: str) -> pd.DataFrame:
        """Scores of segments by methods of context attribution, from the measured coalitions.

        They equal those of `attribute` with the target `margin` and as many donors, and need no
        further passes, so that they are also available of a model that a server runs.

        Args:
            methods: leave_one_out:donor, shapley, context_cite, captum:kernel_shap or captum:lime,
                with options such as context_cite:samples=64 (default: context_cite).

        Returns:
            One row per model, prompt, method and segment, with its score in logits: positive if
            the segment supports the answer.

        Raises:
            UserError: a method is unknown, or reads more than values of coalitions.
        """
        # This imports torch.
        from interp.measurements.effects.context import context_scores

        parts = self.measured.parts("coalition_values")
        return context_scores(parts, methods or ("context_cite",))

    def browser(self) -> Browser:
        """With the effects of the segments, and their scores by methods of context attribution."""
        return self.browsed(self._panels, (*effect_numbers(self.measured), *self.links()))

    def _panels(self, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
        yield from effect_panels(self.measured, prompts)
        if len(self._context):
            yield from context_panels(self._context, prompts)

    def noted(self) -> Mapping[str, object]:
        """The errors of each model; prints a line about each mean in which effects cancel."""
        effects = self.table("segment_effects", EFFECT_COLUMNS)
        for note in self._cancelled(effects):
            echo(note)
        return errors_by_model(effects)


def _figure(numbers: pd.DataFrame) -> FigureItem | None:
    """The mean effects of the segments as bars; None without any."""
    shown = numbers.dropna(subset="value")
    if shown.empty:
        return None
    note = "Bars: mean Shapley values over prompts, in logits of the model's own answer"
    ends = "; whiskers: 95% intervals" if shown["low"].notna().any() else ""
    note = f"{note}{ends}. Positive: the segment supports the answer. n counts prompts."
    segments = shown["number"].str.removeprefix(_OF).str.removesuffix(_IN)
    named = shown.assign(segment=segments, effect=shown["value"].astype(float))
    draw = partial(_bars, named, hue="model", n="n")
    return FigureItem("segment_effects", "Effects of segments", draw, note)


def _bars(table: pd.DataFrame, ax: "Axes | None" = None, *, hue: str, n: str) -> "Axes":
    """Draw effects as bars: a cluster for each segment, a bar for each value of `hue`."""
    from interp.report.figures.bars import grouped_bars
    from interp.report.figures.style import QUIET

    interval = ("low", "high")
    ax = grouped_bars(table, x="segment", y="effect", hue=hue, n=n, interval=interval, ax=ax)
    ax.axhline(0, color=QUIET, linewidth=0.8)
    ax.set_ylabel("effect in logits")
    return ax


def _context(table: pd.DataFrame) -> "Axes":
    """Draw the mean scores of segments, with one panel per model."""
    from interp.report.figures.style import panel_a_model

    named = table.assign(segment=table["segment"].map(segment_label), effect=table["score"])
    return panel_a_model(named, partial(_bars, hue="method", n="prompts"))
