"""The small tables of effects of segments."""

from interp.analysis.segment_effects import COLUMNS, segment_effect_table
from interp.report.console import mean_with_sd
from interp.report.results import Measured, Results
from interp.results.notes import errors_by_model


def of_effects(run: Measured) -> Results:
    """Mean effects of segments, one row per model, kind of donor and segment."""
    effects = run.table("segment_effects", COLUMNS)
    table = segment_effect_table(effects)
    alone = table[table["other_segment"] == ""].drop(columns="other_segment")
    shown = alone[["model", "donor_kind", "segment", "prompts"]].assign(
        shapley=mean_with_sd(alone["shapley"], alone["shapley_sd"]),
        leave_one_out=mean_with_sd(alone["leave_one_out"], alone["leave_one_out_sd"]),
    )
    title = "Effects of segments on the answer, in logits: mean (sd) over prompts"
    return Results({"segment_effect_table": table}, [(title, shown)], errors_by_model(effects))
