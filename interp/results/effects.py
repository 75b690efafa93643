"""Display of the exact effects of segments."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from interp.analysis.segments import EFFECT_COLUMNS, segment_effect_table
from interp.report.formatting import mean_with_sd, segment_label
from interp.report.glance import MOST_NUMBERS, headline
from interp.report.page import FigureItem, TableItem
from interp.results.result import Result, errors_by_model, figure_of
from interp.statistics.clusters import cluster_mean_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class SegmentEffects(Result):
    """The effect of each segment on models' answers."""

    question: ClassVar[str] = "How much does each segment change the answer, in logits?"

    def headline(self) -> pd.DataFrame:
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
            name = f"effect of {segment_label(segment)} in logits"
            table = table.drop(columns="note")
            parts.append(headline(table, name, value="mean", n="trials", unit="prompts"))
        return pd.concat(parts, ignore_index=True) if parts else super().headline()

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Mean effects, one row per model, kind of donor, and segment or pair of segments."""
        table = segment_effect_table(self.table("segment_effects", EFFECT_COLUMNS))
        alone = table[table["other_segment"] == ""].drop(columns="other_segment")
        shown = alone[["model", "donor_kind", "segment", "prompts"]].assign(
            shapley=mean_with_sd(alone["shapley"], alone["shapley_sd"]),
            leave_one_out=mean_with_sd(alone["leave_one_out"], alone["leave_one_out_sd"]),
        )
        title = "Effects of segments on the answer, in logits: mean (sd) over prompts"
        yield TableItem("segment_effect_table", title, table, narrow=[(title, shown)])

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

    def noted(self) -> Mapping[str, object]:
        """The errors of each model."""
        return errors_by_model(self.table("segment_effects", EFFECT_COLUMNS))
