"""Effects of segments over prompts."""

import pandas as pd

KEY = ["model", "donor_kind", "segment", "other_segment"]

COLUMNS = [*KEY, "prompt_id", "shapley", "leave_one_out", "interaction", "error"]
"""Columns of the segment_effects table that `segment_effect_table` reads."""


def segment_effect_table(segment_effects: pd.DataFrame) -> pd.DataFrame:
    """Mean effects, one row per model, kind of donor and segment, or two segments together.

    Columns are model, donor_kind, segment, other_segment (empty for a segment by itself); prompts;
    shapley, leave_one_out and interaction, means over prompts in logits, each with its sample
    standard deviation (_sd).

    Args:
        segment_effects: rows of the segment_effects table, with `COLUMNS`.
    """
    rows = segment_effects[segment_effects["error"] == ""]
    grouped = rows.assign(other_segment=rows["other_segment"].fillna("")).groupby(KEY, sort=False)
    effects = {
        name: (column, how)
        for column in ("shapley", "leave_one_out", "interaction")
        for name, how in ((column, "mean"), (f"{column}_sd", "std"))
    }
    table: pd.DataFrame = grouped.agg(prompts=("prompt_id", "nunique"), **effects).reset_index()
    return table
