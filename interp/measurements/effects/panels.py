"""What the browser of pairs shows about the effects of segments: bars by segment."""

from collections.abc import Iterator, Sequence

import pandas as pd

from interp.report.formatting import segment_label
from interp.report.pairs import Bars, Panel, by_pair, with_sides
from interp.results.measured import ResultTables

_ABOUT = [
    *("model", "donor_kind", "segment", "other_segment"),
    *("prompt_id", "answer", "other_answer", "error"),
]
_MEASURES = ["shapley", "leave_one_out", "interaction"]


def effect_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The effects of a pair's segments, as bars for each side, by model, donors and measure."""
    columns = [*_ABOUT, *_MEASURES]
    rows = measured.table("segment_effects", columns, prompts=prompts["prompt_id"])
    rows = rows[rows["error"] == ""].fillna({"other_segment": ""})
    rows = rows.melt(_ABOUT, _MEASURES, "measure").dropna(subset="value")
    contrast = " of " + rows["answer"] + " minus " + rows["other_answer"]
    rows = rows.assign(contrast=contrast, said=", answered " + rows["answer"])
    yield from _bars("Effects of segments", rows, prompts, ["model", "donor_kind", "measure"])


def context_panels(scores: pd.DataFrame, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The scores of a pair's segments (`context_scores`), as bars by side, by model and method."""
    rows = scores.assign(value=scores["score"], other_segment="", contrast="", said="")
    yield from _bars("Context attribution", rows, prompts, ["model", "method"])


def _bars(
    title: str, rows: pd.DataFrame, prompts: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[str, Panel]]:
    """Each pair's values by segment, for each combination of `by`."""
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
