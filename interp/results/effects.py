"""Effects of segments on answers."""

from collections.abc import Iterator, Mapping

from interp.analysis.segment_effects import COLUMNS, segment_effect_table
from interp.report.console import mean_with_sd
from interp.report.page import FigureItem, TableItem
from interp.results.notes import errors_by_model
from interp.results.result import Result


class SegmentEffects(Result):
    """What each segment does to the answers of models."""

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Mean effects, one row per model, kind of donor and segment."""
        table = segment_effect_table(self.table("segment_effects", COLUMNS))
        alone = table[table["other_segment"] == ""].drop(columns="other_segment")
        shown = alone[["model", "donor_kind", "segment", "prompts"]].assign(
            shapley=mean_with_sd(alone["shapley"], alone["shapley_sd"]),
            leave_one_out=mean_with_sd(alone["leave_one_out"], alone["leave_one_out_sd"]),
        )
        title = "Effects of segments on the answer, in logits: mean (sd) over prompts"
        yield TableItem("segment_effect_table", title, table, narrow=[(title, shown)])

    def noted(self) -> Mapping[str, object]:
        """Errors."""
        return errors_by_model(self.table("segment_effects", COLUMNS))
