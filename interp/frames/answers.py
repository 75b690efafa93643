"""Answers of models to prompts, and what they are attributed to."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from interp.analysis.accuracy import accuracy_table
from interp.analysis.attribution_table import attribution_table
from interp.analysis.comparison import comparison_table, judged_pairs, measures_of
from interp.analysis.segments import segment_ratios, segment_table, token_shares
from interp.errors import UserError
from interp.frames.shared import Sized, chosen, figure_of
from interp.report.figures.bars import segment_shares
from interp.report.formatting import ratio_title
from interp.report.html import Display, heat_maps, notebook_html


class Answered(Sized):
    """Results that hold answers of models."""

    __slots__ = ()
    prompts: pd.DataFrame
    answers: pd.DataFrame
    cluster: str | None

    def compare(self, a: str, b: str) -> pd.DataFrame:
        """Two models on the same prompts: one row for each side of a pair, and for whole pairs.

        Columns are those of `interp compare`: both accuracies; their difference a - b, its 95%
        interval and p with clusters as the unit, and the differences below and above which all are
        excluded; pairs that one alone has right, and McNemar's exact test, which takes pairs as
        independent.

        Args:
            a: name of a model.
            b: name of another one.

        Raises:
            UserError: there is no such model, or none of its answers was judged.
        """
        cluster = self.cluster or "pair_id"
        pairs = [
            judged_pairs(
                chosen(self.answers, "model", name), self.prompts, model=name, cluster=cluster
            )
            for name in (a, b)
        ]
        measures = measures_of(pairs[0], cluster=cluster)
        return comparison_table(*pairs, measures=measures, cluster=cluster)


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Answered):
    """Answers of models to prompts."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    answers: pd.DataFrame
    """The answers table (`interp.tables`): one row per prompt."""
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""
    cluster: str | None = None
    """The factor whose prompts depend on each other, such as their entity; None where pairs do
    not."""

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt."""
        return self.answers

    def summary(self) -> pd.DataFrame:
        """One row: paired accuracy, accuracy of each side, number of prompts."""
        return accuracy_table(self.answers, self.prompts)

    def _repr_html_(self) -> str | None:
        # Without prompts there is nothing to sum up, and the notebook shows the plain text.
        return None if self.answers.empty else notebook_html([("Accuracy", self.summary())])


@dataclass(frozen=True, slots=True, repr=False)
class Attributions(Answered):
    """Answers of models to prompts, and what they are attributed to."""

    prompts: pd.DataFrame
    """The prompts table: one row per prompt, with pair_id, side and one column per factor."""
    answers: pd.DataFrame
    """The answers table: one row per prompt."""
    option_probabilities: pd.DataFrame
    """The option_probabilities table: one row per prompt and option."""
    segment_scores: pd.DataFrame
    """The segment_scores table: one row per prompt, method and segment."""
    tokens: pd.DataFrame | None = None
    """The tokens table: one row per prompt and token; None if not asked for."""
    token_scores: pd.DataFrame | None = None
    """The token_scores table: one row per prompt, method and token; None if not asked for."""
    ratio: tuple[str, str] | None = None
    """The two segments that the prompts' system compares, the first over the second."""
    cluster: str | None = None
    """The factor whose prompts depend on each other, such as their entity; None where pairs do
    not."""

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt, method and segment."""
        return self.segment_scores

    def ratios(self, above: str | None = None, below: str | None = None) -> pd.DataFrame:
        """One row per prompt and method: the share of one segment over that of another.

        Args:
            above: the segment above the line; that of the prompts' system if not given.
            below: the segment below the line, likewise.

        Raises:
            UserError: no segments are given, and the system compares none.
        """
        named = self.ratio or (above, below)
        above, below = above or named[0], below or named[1]
        if above is None or below is None:
            known = ", ".join(self.segment_scores["segment"].unique())
            raise UserError(
                f"the prompts name no two segments to compare; name two of {known}, such as "
                "ratios(above, below)"
            )
        return segment_ratios(self.segment_scores, (above, below))

    def token_shares(self) -> pd.DataFrame:
        """The token scores with each token's text, segment and share of the prompt's scores.

        Raises:
            UserError: the tokens were not kept.
        """
        if self.tokens is None or self.token_scores is None:
            raise UserError("the tokens were not kept; call attribute(..., keep_tokens=True)")
        return token_shares(self.token_scores, self.tokens)

    def summary(self) -> pd.DataFrame:
        """Means and standard deviations over the prompts.

        One row with each method's ratio next to the accuracies, where the prompts' system compares
        two segments; else one row per method and segment.
        """
        if self.ratio is None:
            return self.segments()
        return attribution_table(self.ratios(), self.answers, self.prompts)

    def segments(self) -> pd.DataFrame:
        """One row per model, method and segment: mean score and share, over the prompts."""
        return segment_table(self.segment_scores)

    def plot(self) -> Figure:
        """The mean share of each segment by each method, as bars, a panel for each model."""
        return figure_of(segment_shares(self.segments()))

    def heat_map(
        self, pair: str | None = None, *, model: str | None = None, method: str | None = None
    ) -> Display:
        """The prompts of a pair as running text, each token shaded by its share of the scores.

        Args:
            pair: a `pair_id` of the prompts table; the first if not given.
            model: one of the models; all if not given.
            method: one of the attribution methods; all if not given.

        Raises:
            UserError: the tokens were not kept, or there is no such pair, model or method.
        """
        shares = self.token_shares()
        for name, value in (("model", model), ("method", method)):
            if value is not None:
                shares = chosen(shares, name, value)
        shown = chosen(self.prompts, "pair_id", pair or self.prompts["pair_id"].iloc[0])
        maps = heat_maps(shares, prompts=shown, answers=self.answers)
        return Display(notebook_html([], list(maps)))

    def _repr_html_(self) -> str | None:
        if self.answers.empty:
            return None
        compared = "Scores by segment" if self.ratio is None else ratio_title(self.ratio)
        title = f"{compared}: mean and standard deviation over prompts"
        table = notebook_html([(title, self.summary())])
        return table if self.tokens is None else table + self.heat_map().html
