"""What the browser of pairs shows about the effects of segments: bars by segment."""

from collections.abc import Iterator

import pandas as pd

from interp.report.formatting import segment_label
from interp.report.pairs import Bars, Number, Panel, mean_by_pair, with_sides
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

MEASURES = ("shapley", "leave_one_out", "interaction")

_KEY = ["model", "donor_kind", "segment", "other_segment"]

_COLUMNS = [*_KEY, "prompt_id", "answer", "other_answer", *MEASURES, "error"]

_NOTE = "In logits of {contrasts}. Positive: the segment supports the answer."


def effect_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The effects of a pair's segments, as bars for each side, by model, donors and measure."""
    rows = measured.table("segment_effects", _COLUMNS, prompts=prompts["prompt_id"])
    rows = with_sides(rows[rows["error"] == ""], prompts)
    for of, own in grouped(rows, ["pair_id", "model", "donor_kind"]):
        contrasts = (own["answer"] + " minus " + own["other_answer"]).drop_duplicates()
        note = _NOTE.format(contrasts=" or ".join(contrasts))
        for measure in MEASURES:
            known = own.dropna(subset=measure)
            if known.empty:
                continue
            groups = {
                f"{side}, answered {each['answer'].iloc[0]}": [
                    (_segments(row["segment"], row["other_segment"]), float(row[measure]))
                    for row in each.to_dict("records")
                ]
                for side, each in known.groupby("side", sort=False)
            }
            labels = {name: str(of[name]) for name in ("model", "donor_kind")}
            yield (
                str(of["pair_id"]),
                Bars("Effects of segments", {**labels, "measure": measure}, groups, note=note),
            )


def context_panels(scores: pd.DataFrame, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The scores of a pair's segments, as bars for each side, by model and method.

    Args:
        scores: rows of `interp.measurements.effects.context.context_scores`.
        prompts: rows of the prompts table, of whole pairs.
    """
    note = "In logits. Positive: the segment supports the answer."
    for of, own in grouped(with_sides(scores, prompts), ["pair_id", "model", "method"]):
        groups = {
            str(side): [
                (segment_label(str(row["segment"])), float(row["score"]))
                for row in each.to_dict("records")
            ]
            for side, each in own.groupby("side", sort=False)
        }
        labels = {name: str(of[name]) for name in ("model", "method")}
        yield str(of["pair_id"]), Bars("Context attribution", labels, groups, note=note)


def context_numbers(scores: pd.DataFrame, prompts: pd.DataFrame) -> Iterator[Number]:
    """The mean score of each segment over a pair's prompts, by model and method."""
    for of, own in grouped(scores, ["model", "method", "segment"]):
        labels = {name: str(value) for name, value in of.items()}
        yield Number("score in logits", labels, mean_by_pair(own, prompts, "score"))


def _segments(segment: object, other: object) -> str:
    names = [str(segment), *([str(other)] if isinstance(other, str) and other else [])]
    return " × ".join(map(segment_label, names))


def effect_numbers(measured: ResultTables) -> Iterator[Number]:
    """The mean Shapley value of each segment over a pair's prompts."""
    prompts = measured.table("prompts", ["prompt_id", "pair_id"])
    rows = measured.table(
        "segment_effects", ["model", "donor_kind", "segment", "prompt_id", "shapley"]
    )
    key = ["model", "donor_kind", "segment"]
    first = rows["donor_kind"].iloc[:1].max()
    for of, own in grouped(rows.dropna(subset="shapley"), key):
        labels = {name: str(value) for name, value in of.items()}
        own_headline = f"effect of {segment_label(labels['segment'])} in logits"
        yield Number(
            "effect in logits",
            labels,
            mean_by_pair(own, prompts, "shapley"),
            headline=own_headline if labels["donor_kind"] == first else "",
        )
