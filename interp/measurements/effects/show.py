"""Display of the exact effects of segments."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pandas as pd

from interp.choices import COUNTERPART, UNCHANGED
from interp.estimates.compute import WHY
from interp.estimates.declared import Largest, Mean, Plain, Table, deviation
from interp.estimates.shown import Estimated
from interp.measurements.attribution import largest
from interp.report.formatting import segment_label
from interp.report.glance import MOST_NUMBERS, Opening
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Bars, Browser, Panel, by_pair, with_sides
from interp.results.measured import ResultTables
from interp.results.result import Result, errors_by_model, figure_of

EFFECT_KEY = ["model", "donor_kind", "segment", "other_segment"]

_MEANS = ["shapley", "leave_one_out", "interaction"]

EFFECT_COLUMNS = [*EFFECT_KEY, "prompt_id", *_MEANS, "note", "error"]
"""Columns of the segment_effects table that its summaries use."""


def segment_trials(effects: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt and combination of `EFFECT_KEY`, with the numbers of the table.

    Where no donor changes a segment, `WHY` says so.
    """
    rows = effects[effects["error"] == ""]
    rows = rows.assign(other_segment=rows["other_segment"].fillna(""))
    same = rows["note"].fillna("").str.contains(UNCHANGED, regex=False)
    same = same.groupby([rows[name] for name in EFFECT_KEY]).transform("all")
    why = rows["donor_kind"].map({COUNTERPART: "same on both sides"}).fillna(UNCHANGED)
    return rows.assign(shapley_size=rows["shapley"].abs(), **{WHY: why.where(same, "")})


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SUPPORTS = "positive: the segment supports the answer"

SEGMENTS = Table(
    name="segment_effect_table",
    title="Effects of segments on the answer, in logits: means over prompts",
    text="""Rows of two segments have their interaction alone. Where a model gives one answer to
    most prompts, effects of other instances cancel in their mean, and where it gives one answer to
    both sides of a pair, those of counterparts; shapley_size is their mean size.""",
    by=EFFECT_KEY,
    measured="segment_effects",
    numbers=[
        Mean("shapley", "Shapley value", "logits", _SUPPORTS, some=True),
        Mean("leave_one_out", "effect of replacing it alone", "logits", _SUPPORTS, some=True),
        Mean("interaction", "Shapley interaction", "logits", "as in segment_effects", some=True),
        Plain("shapley_size", "absolute Shapley value", "logits", why="shapley", some=True),
        *(
            deviation(f"{name}_sd", "standard deviation", "logits", of=name, why=name, some=True)
            for name in _MEANS
        ),
    ],
    trials="prompts",
    order=["prompts", *(f"{name}{end}" for name in _MEANS for end in ("", "_sd")), "shapley_size"],
    headline=Largest(
        "shapley",
        "effect of {segment} in logits",
        within=["segment"],
        where={"other_segment": ""},
        terminal=True,
        first="donor_kind",
        by_size="shapley_size",
    ),
)


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
        Mean("score", "mean over prompts", "logits", _SUPPORTS, ends=("low", "high")),
        Plain("size", "mean of the absolute score", "logits", why="score"),
    ],
    trials="prompts",
)

_ENDS = ("shapley_low", "shapley_high")

_BY_KIND = {"instance": "other instances as donors", COUNTERPART: "counterparts as donors"}


class SegmentEffects(Result):
    """The effect of each segment on models' answers."""

    question = "How much does each segment change the answer, in logits?"

    def opening(self) -> Opening:
        """Mean Shapley values, in logits, of the segments with the largest effects."""
        plain = super().opening()
        names = plain.numbers["number"].unique()[:MOST_NUMBERS]
        numbers = plain.numbers[plain.numbers["number"].isin(names)]
        return replace(plain, numbers=numbers, sentences=[*self._findings()], figure=self._figure())

    def plot(self) -> "Figure":
        """The mean effects of the segments as bars."""
        figure = self._figure()
        return super().plot() if figure is None else figure_of(figure.draw())

    def _figure(self) -> FigureItem | None:
        """The mean effects of the segments as bars; None without any."""
        rows = [rows for _, rows in self.estimated[0].chosen[:MOST_NUMBERS]]
        shown = pd.concat(rows).dropna(subset="shapley") if rows else pd.DataFrame()
        if shown.empty:
            return None
        note = "Bars: mean Shapley values over prompts, in logits of the model's own answer"
        ends = "; whiskers: 95% intervals" if shown[_ENDS[0]].notna().any() else ""
        note = f"{note}{ends}. Positive: the segment supports the answer. n counts prompts."
        return FigureItem("segment_effects", "Effects of segments", partial(_bars, shown), note)

    def items(self) -> Iterator[TableItem]:
        """Mean effects, one row per model, kind of donor, and segment or pair of segments."""
        table, *others = self.declared_items()
        yield table
        if len(self._largest):
            title = "Which segment has the largest effect?"
            yield largest.item(self._largest, list(self._findings()), title, _LARGEST_NOTE)
        yield from others

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The effects of segments and, if the run names methods, their scores."""
        each = [(SEGMENTS, segment_trials(self.table("segment_effects", EFFECT_COLUMNS)))]
        if len(scores := self._context):
            each.append((CONTEXT, scores.assign(size=scores["score"].abs())))
        pairs = self.prompts[["prompt_id", "pair_id"]]
        return tuple(
            Estimated(table, self.clustered(trials.merge(pairs, on="prompt_id")))
            for table, trials in each
        )

    @cached_property
    def _context(self) -> pd.DataFrame:
        """The scores by the methods that the run names; empty without any."""
        named = self.measured.about.parameters.get("context")
        return self.table("context_scores") if named else pd.DataFrame()

    def _findings(self) -> Iterator[str]:
        """Which segment has the largest effect, for each model and kind of donor."""
        for (model, kind), outcomes in self._largest.groupby(["model", "donor_kind"], sort=False):
            yield largest.sentence(
                outcomes, f"{model}, {_BY_KIND[str(kind)]}", "effect", self.prompts
            )

    @cached_property
    def _largest(self) -> pd.DataFrame:
        find, columns = largest.largest_effects, largest.VALUE_COLUMNS
        by = ["model", "donor_kind"]
        return largest.largest_of(self, "coalition_values", columns, find, by=by)

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
        from interp.measurements.effects.measure import context_scores

        parts = self.measured.parts("coalition_values")
        return context_scores(parts, methods or ("context_cite",))

    def browser(self) -> Browser:
        """With the effects of the segments, and their scores by methods of context attribution."""
        return self.browsed(self._panels)

    def _panels(self, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
        yield from effect_panels(self.measured, prompts)
        if len(self._context):
            yield from context_panels(self._context, prompts)

    def noted(self) -> Mapping[str, object]:
        """The errors of each model."""
        return errors_by_model(self.table("segment_effects", EFFECT_COLUMNS))


def _bars(rows: pd.DataFrame) -> "Axes":
    from interp.report.figures.bars_and_points import grouped_bars
    from interp.report.figures.style import QUIET, say_if_nothing_is_shown

    rows = rows.assign(segment=rows["segment"].map(segment_label))
    ax = grouped_bars(rows, x="segment", y="shapley", hue="model", n="prompts", interval=_ENDS)
    ax.axhline(0, color=QUIET, linewidth=0.8)
    ax.set_ylabel("effect in logits")
    say_if_nothing_is_shown(ax, rows, _ENDS)
    return ax


_ABOUT = [*EFFECT_KEY, "prompt_id", "answer", "other_answer", "error"]


def effect_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The effects of a pair's segments, as bars for each side, by model, donors and measure."""
    rows = measured.table("segment_effects", [*_ABOUT, *_MEANS], prompts=prompts["prompt_id"])
    rows = rows[rows["error"] == ""].fillna({"other_segment": ""})
    rows = rows.melt(_ABOUT, _MEANS, "measure").dropna(subset="value")
    contrast = " of " + rows["answer"] + " minus " + rows["other_answer"]
    rows = rows.assign(contrast=contrast, said=", answered " + rows["answer"])
    yield from _side_bars("Effects of segments", rows, prompts, ["model", "donor_kind", "measure"])


def context_panels(scores: pd.DataFrame, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The scores of a pair's segments (`context_scores`), as bars by side, by model and method."""
    rows = scores.assign(value=scores["score"], other_segment="", contrast="", said="")
    yield from _side_bars("Context attribution", rows, prompts, ["model", "method"])


def _side_bars(
    title: str, rows: pd.DataFrame, prompts: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[str, Panel]]:
    rows = with_sides(rows, prompts)
    rows["bars"] = rows["side"].astype(str) + rows["said"]
    segments = zip(rows["segment"], rows["other_segment"], strict=True)
    rows["name"] = [" × ".join(map(segment_label, filter(None, both))) for both in segments]
    for pair, labels, members in by_pair(rows, by):
        groups = {
            str(name): [*zip(bars["name"], bars["value"], strict=True)]
            for name, bars in members.groupby("bars", sort=False)
        }
        contrasts = " or".join(members["contrast"].drop_duplicates())
        note = f"In logits{contrasts}. Positive: the segment supports the answer."
        yield pair, Bars(title, labels, groups, note=note)
