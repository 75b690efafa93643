"""What the browser of pairs shows about the effects of segments: bars by segment."""

from collections.abc import Iterator, Mapping

import pandas as pd

from interp.report.formatting import segment_label
from interp.report.pairs import Bars, Number, Panel, mean_by_pair, with_sides
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

MEASURES = ("shapley", "leave_one_out", "interaction")

_COLUMNS = [
    *("model", "donor_kind", "segment", "other_segment"),
    *("prompt_id", "answer", "other_answer", *MEASURES, "error"),
]

_NOTE = "In logits of {contrasts}. Positive: the segment supports the answer."


def effect_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The effects of a pair's segments, as bars for each side, by model, donors and measure."""
    rows = measured.table("segment_effects", _COLUMNS, prompts=prompts["prompt_id"])
    rows = with_sides(rows[rows["error"] == ""], prompts)
    rows = rows.assign(bars=rows["side"].astype(str) + ", answered " + rows["answer"])
    for of, own in grouped(rows, ["pair_id", "model", "donor_kind"]):
        contrasts = (own["answer"] + " minus " + own["other_answer"]).drop_duplicates()
        note = _NOTE.format(contrasts=" or ".join(contrasts))
        for measure in MEASURES:
            if len(known := own.dropna(subset=measure)):
                yield _bars("Effects of segments", {**of, "measure": measure}, known, measure, note)


def context_panels(scores: pd.DataFrame, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The scores of a pair's segments, as bars for each side, by model and method.

    Args:
        scores: rows of `interp.measurements.effects.context.context_scores`.
        prompts: rows of the prompts table, of whole pairs.
    """
    note = "In logits. Positive: the segment supports the answer."
    rows = with_sides(scores, prompts)
    rows = rows.assign(bars=rows["side"].astype(str), other_segment="")
    for of, own in grouped(rows, ["pair_id", "model", "method"]):
        yield _bars("Context attribution", of, own, "score", note)


def _bars(
    title: str, of: Mapping[str, object], rows: pd.DataFrame, value: str, note: str
) -> tuple[str, Panel]:
    """A pair's values by segment, in groups named by the column bars."""
    groups = {
        str(name): [
            (_segments(row["segment"], row["other_segment"]), float(row[value]))
            for row in own.to_dict("records")
        ]
        for name, own in rows.groupby("bars", sort=False)
    }
    labels = {name: str(own) for name, own in of.items() if name != "pair_id"}
    return str(of["pair_id"]), Bars(title, labels, groups, note=note)


def _segments(segment: object, other: object) -> str:
    names = [str(segment), *([str(other)] if isinstance(other, str) and other else [])]
    return " × ".join(map(segment_label, names))


def effect_numbers(measured: ResultTables) -> Iterator[Number]:
    """The mean Shapley value of each segment over a pair's prompts."""
    prompts = measured.table("prompts", ["prompt_id", "pair_id"])
    key = ["model", "donor_kind", "segment"]
    rows = measured.table("segment_effects", [*key, "prompt_id", "shapley"])
    first = rows["donor_kind"].iloc[:1].max()
    for of, own in grouped(rows.dropna(subset="shapley"), key):
        labels = {name: str(value) for name, value in of.items()}
        name = f"effect of {segment_label(labels['segment'])} in logits"
        values = mean_by_pair(own, prompts, "shapley")
        yield Number(
            "effect in logits", labels, values, name if labels["donor_kind"] == first else ""
        )
