"""Display of attributions: how segments and tokens contribute to answers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from interp.errors import UserError
from interp.estimates.declared import Largest, Table
from interp.estimates.shown import Estimated
from interp.measurements.answers.show import Answered, option_panels
from interp.measurements.attribution import largest, segments
from interp.measurements.attribution.example import attribution_panels, typical_pair
from interp.measurements.attribution.ratios import RATIOS, attribution_table, ratio_trials
from interp.prompts.thought import is_part
from interp.report.formatting import ratio_title, segment_label
from interp.report.glance import MOST_NUMBERS, Opening, dots, dots_with
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser, Number, Panel
from interp.results.given import given_by
from interp.results.result import chosen, figure_of, summarize
from interp.statistics.summaries import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from interp.report.html import Display

_GAP_NOTE = (
    "difference_size: mean size of the difference in the target between the prompt and what the "
    "method compares it with (donors, or the mean embedding). gap_size: mean size of the sum of "
    "the scores minus this difference, in the target's unit. relative_gap: their ratio. "
    "interp methods tells when the scores of a method add up."
)

_LARGEST_NOTE = (
    "Scores are summed over a segment's tokens and compared within a prompt by size, so that "
    "longer segments are favored; text outside all segments is left out."
)


class Attributions(Answered):
    """Models' answers to prompts, and attributions of these answers."""

    question = (
        "To which segments do the attribution methods point? On which the answers depend, effects "
        "measures."
    )
    framed = "segment_scores"

    @property
    def segment_scores(self) -> pd.DataFrame:
        """The segment_scores table: one row per prompt, method and segment."""
        return self.table("segment_scores")

    @property
    def tokens(self) -> pd.DataFrame | None:
        """The tokens table, with one row per prompt and token; None if not requested."""
        return self.table("tokens") if self._keeps_tokens else None

    @property
    def token_scores(self) -> pd.DataFrame | None:
        """The token_scores table, one row per prompt, method and token; None if not requested."""
        return self.table("token_scores") if self._keeps_tokens else None

    @property
    def ratio(self) -> tuple[str, str] | None:
        """The two segments that the prompts' system compares: numerator, then denominator."""
        return self.measured.about.ratio

    def ratios(self, above: str | None = None, below: str | None = None) -> pd.DataFrame:
        """Ratios of one segment's share to another's: one row per prompt and method.

        By default, those that the prompts' system compares: `above` is the numerator.

        Raises:
            UserError: an argument is missing and the system compares no segments.
        """
        named = self.ratio or (above, below)
        above, below = above or named[0], below or named[1]
        if above is None or below is None:
            choices = ", ".join(self.table("segment_scores", ["segment"])["segment"].unique())
            raise UserError(
                f"the prompts do not name two segments to compare; pass two of {choices}, as in "
                "ratios(above, below)"
            )
        parts = self.measured.parts("segment_scores", segments.RATIO_COLUMNS)
        ratios = [segments.segment_ratios(part, (above, below)) for part in parts]
        return pd.concat(ratios, ignore_index=True)

    def finds(self) -> pd.DataFrame:
        """How highly methods rank each prompt's deciding segments; empty if the data name none."""
        decisive = self.measured.about.decisive
        if decisive is None or "segment_scores" not in self.measured.names():
            return pd.DataFrame()
        prompts, columns = self.prompts, segments.DECISIVE_COLUMNS
        parts = self.measured.parts("segment_scores", columns)
        trials = [segments.finds(part, prompts, decisive) for part in parts]
        return pd.concat(trials, ignore_index=True)

    def token_shares(self) -> pd.DataFrame:
        """The token scores, with each token's text, segment and share of the prompt's scores.

        Raises:
            UserError: the tokens were not kept.
        """
        if self.tokens is None or self.token_scores is None:
            raise UserError("the tokens were not kept; call attribute(..., keep_tokens=True)")
        return segments.token_shares(self.token_scores, self.tokens)

    def summary(self) -> pd.DataFrame:
        """Means and standard deviations over the prompts.

        If the prompts' system compares two segments, each model has one row, with its accuracies
        and each method's ratio. Otherwise, it has one row per method and segment.
        """
        return self.segments() if self.ratio is None else self._by_model().frame

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The ratios of compared segments, if there are any, and the scores by segment."""
        rows = self.table("segment_scores", segments.TABLE_COLUMNS)
        scores = self._scores_by_segment(segments.SEGMENTS, rows)
        if self.ratio is None:
            return (scores,)
        named = f"{ratio_title(self.ratio)} ({{method}}, geometric mean)"
        compared = replace(
            RATIOS,
            title=ratio_title(self.ratio),
            headline=Largest("geometric", named, within=["method"], first="ratio"),
        )
        trials = ratio_trials(self._ratios, self.prompts, cluster=self.cluster or "pair_id")
        return Estimated(compared, trials), Estimated(
            replace(scores.table, headline=None), scores.trials
        )

    def _scores_by_segment(self, table: Table, rows: pd.DataFrame) -> Estimated:
        cluster = self.cluster or "pair_id"
        return Estimated(table, segments.segment_trials(rows, self.prompts, cluster))

    def segments(self) -> pd.DataFrame:
        """One row per model, method and segment: the means over prompts of its score and share."""
        return self.estimated[-1].frame

    def plot(self) -> "Figure":
        """The mean share of each segment by each method, as bars, with a panel for each model."""
        from interp.measurements.attribution.figures import segment_shares

        return figure_of(segment_shares(self.segments()))

    def heat_map(
        self, pair: str | None = None, *, model: str | None = None, method: str | None = None
    ) -> "Display":
        """A pair's prompts as running text, with each token shaded by its share of the scores.

        Args:
            pair: a `pair_id` of the prompts table; by default the first.
            model: name of a model; by default all models.
            method: name of an attribution method; by default all methods.

        Raises:
            UserError: the tokens were not kept, or there is no such pair, model or method.
        """
        from interp.report.html import Display, notebook_html, token_heat_map

        shares = self.token_shares()
        for name, value in (("model", model), ("method", method)):
            if value is not None:
                shares = chosen(shares, name, value)
        prompts, answers = self.prompts, self.answers
        prompts = chosen(prompts, "pair_id", pair or prompts["pair_id"].iloc[0])
        about: dict[str, Any] = {"prompts": prompts, "answers": answers, "compared": self.ratio}
        maps = [
            token_heat_map(rows, method=str(of["method"]), **about)
            for of, rows in grouped(shares, ["model", "method"])
        ]
        return Display(notebook_html([], maps))

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Accuracies, any ratios, scores by segment, deciding segments, readings of answers."""
        yield self._by_model()
        yield from (estimated.item for estimated in self.estimated[:-1])
        table = self.segments()
        thinks = table["segment"].map(is_part).any()
        item = self.estimated[-1].item
        yield replace(item, narrow=()) if self.ratio or thinks else item
        if thinks:
            rows = self.table("segment_scores", segments.TABLE_COLUMNS)
            rows = segments.with_whole_thoughts(rows)
            title = "Scores of the thought as a whole, and of the other segments"
            item = self._scores_by_segment(replace(segments.SEGMENTS, title=title), rows).item
            yield replace(item, name="thought_scores")
        yield from self._completeness()
        if len(self._largest):
            title = "Which segment has the largest score?"
            yield largest.item(self._largest, list(self._findings()), title, _LARGEST_NOTE)
        decisive = self.measured.about.decisive
        if decisive is not None and len(premises := self.finds()):
            from interp.measurements.attribution.figures import decisive_segments

            cluster = self.cluster or "pair_id"
            clusters = self.prompts[["prompt_id", cluster]]
            table = segments.decisive_table(premises.merge(clusters, on="prompt_id"), cluster)
            title = f"Do attributions find the {segment_label(decisive.factor)}?"
            note = f"Intervals are clustered: prompts with the same {cluster} form one cluster."
            draw = partial(decisive_segments, table)
            yield FigureItem("decisive_segments", title, draw, f"n counts clusters. {note}")
            yield TableItem("decisive_table", title, table, note)
        yield from self._reading_items()

    def _findings(self) -> Iterator[str]:
        """Which segment has the largest score by the first method, for each model."""
        table = self._largest
        rows = table[table["method"] == table["method"].iloc[:1].max()]
        for (model, method), outcomes in rows.groupby(["model", "method"], sort=False):
            yield largest.sentence(outcomes, f"{model}, {method}", "score", self.prompts)

    @cached_property
    def _largest(self) -> pd.DataFrame:
        find, columns = largest.largest_scores, largest.SCORE_COLUMNS
        return largest.largest_of(self, "segment_scores", columns, find, by=["model", "method"])

    def opening(self) -> Opening:
        """Paired accuracy, ratios or shares of segments, and a typical pair, shaded."""
        answered, declared = super().opening(), super(Answered, self).opening()
        every = answered.numbers  # of whole pairs first, unless prompts have one side
        accuracy = every[every["number"] == every["number"].iloc[0]]
        names = declared.numbers["number"].unique()[: MOST_NUMBERS - 1]
        others = declared.numbers[declared.numbers["number"].isin(names)]
        # A table without rows would turn the numbers into objects.
        numbers = pd.concat([accuracy, others] if len(others) else [accuracy], ignore_index=True)
        return replace(
            answered,
            numbers=numbers,
            differences={**answered.differences, **declared.differences},
            sentences=list(self._findings()),
            picture=typical_pair(self, None if self.ratio is None else self.ratios()),
            figure=self._dots(others),
        )

    def _dots(self, numbers: pd.DataFrame) -> FigureItem | None:
        """Numbers about segments, as dots with intervals, if they compare models."""
        of_segments = numbers.dropna(subset="value")
        if of_segments["model"].nunique() < 2:
            return None
        note = f"{dots_with(of_segments)}; n counts prompts."
        if self.ratio is not None:
            note = f"Geometric means over prompts; 1 means equal scores per token. {note}"
        return FigureItem("at_a_glance", "Where the scores lie", partial(dots, of_segments), note)

    def browser(self) -> Browser:
        """With shaded tokens, shares of segments, and probabilities of options."""
        return self.browsed(self._panels, self._numbers())

    def _panels(self, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
        yield from attribution_panels(self.measured, prompts)
        yield from option_panels(self.measured, prompts)

    def _numbers(self) -> Iterator[Number]:
        for link in self.links():
            # Other tables of segments do not name the target, which is that of the whole run.
            yield replace(link, of={name: of for name, of in link.of.items() if name != "target"})

    def noted(self) -> Mapping[str, object]:
        """Each model's share of prompts without an answer, and errors in its answers and scores."""
        answers, columns = self._own_answers, ["model", "prompt_id", "error"]
        rows = (
            self.measured.parts("segment_scores", columns, filters=[("error", "!=", "")])
            if self.ratio is None
            else [self._ratios]
        )
        failed = pd.concat([answers, *rows])
        return summarize(answers, failed[failed["error"] != ""], cautions=self.cautions)

    def _completeness(self) -> Iterator[TableItem]:
        """How far scores are from adding up, for methods whose scores should."""
        table = given_by(self.measured).gaps()
        if table is not None and len(table):
            shown = table[["model", "method", "difference_size", "gap_size", "relative_gap"]]
            title = "Do scores add up to the change in the target? Mean sizes over prompts"
            yield TableItem("completeness_table", title, table, _GAP_NOTE, [(title, shown)])

    @property
    def _keeps_tokens(self) -> bool:
        return "token_scores" in self.measured.names()

    @cached_property
    def _ratios(self) -> pd.DataFrame:
        return self.ratios()

    def _by_model(self) -> TableItem:
        """One row per model: accuracies and, if two segments are compared, their ratios."""
        item = self._accuracy_item()
        if self.ratio is None:
            return item
        table = attribution_table(self.estimated[0].frame, item.frame)
        narrow = [(item.title, item.frame)]
        return replace(
            item, name="attribution_table", frame=table, narrow=narrow, display=item.frame
        )

    def _repr_html_(self) -> str | None:
        if not self.measured.size("answers"):
            return None
        from interp.report.html import notebook_html

        tables = [*self._by_model().shown, *self.estimated[0].item.shown]
        if self.ratio is None:
            tables = [("Scores by segment: mean and standard deviation", self.summary())]
        table = notebook_html(tables, cautions=self.cautions)
        return table + self.heat_map().html if self._keeps_tokens else table
