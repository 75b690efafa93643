"""Whether scores add up to the change in the target that they explain, as methods promise."""

from collections.abc import Iterable

import pandas as pd

from interp.attribution.registry import find_method, method_names
from interp.variants import name_of

GAP_COLUMNS = ["model", "prompt_id", "method", "target", "score", "completeness_gap"]
"""Columns of the segment_scores table that `completeness_table` uses."""

_BY = ["model", "method", "target"]


def completeness_table(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One row per model, method and target, for methods whose scores should add up.

    A prompt's gap is the sum of its scores minus the difference in the target between the prompt
    and what the method compares it with (completeness: Sundararajan et al. 2017, Section 3).
    Columns are model, method, target, prompts; difference and gap, means over prompts in the
    target's unit; difference_size and gap_size, the means of their absolute values; largest_gap,
    the largest absolute gap; and relative_gap, gap_size divided by difference_size. Each prompt
    counts once. All rows of a prompt are in one part.
    """
    sums = pd.concat([pd.DataFrame(columns=[*_BY, "sum", "gap"]), *map(_by_prompt, parts)])
    sums = sums.astype({"sum": float, "gap": float})
    difference = sums["sum"] - sums["gap"]
    rows = sums.assign(
        difference=difference, difference_size=difference.abs(), gap_size=sums["gap"].abs()
    )
    table: pd.DataFrame = rows.groupby(_BY, sort=False).agg(
        prompts=("gap", "size"),
        difference=("difference", "mean"),
        gap=("gap", "mean"),
        difference_size=("difference_size", "mean"),
        gap_size=("gap_size", "mean"),
        largest_gap=("gap_size", "max"),
    )
    relative = table["gap_size"] / table["difference_size"].where(table["difference_size"] > 0)
    return table.assign(relative_gap=relative).reset_index()


def adds_up(label: str) -> bool:
    """Whether a method promises that its scores add up; False if it is no longer installed."""
    return name_of(label) in method_names() and bool(find_method(label).complete)


def _by_prompt(scores: pd.DataFrame) -> pd.DataFrame:
    """The sum of the scores and the gap of each prompt, by method."""
    promised = scores["method"].map(adds_up).astype(bool)
    rows = scores[promised & scores["completeness_gap"].notna()]
    each = rows.groupby([*_BY, "prompt_id"], sort=False)
    return each.agg(sum=("score", "sum"), gap=("completeness_gap", "first")).reset_index()
