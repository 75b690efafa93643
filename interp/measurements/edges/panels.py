"""What the browser of pairs shows about edges: the largest of each pair."""

from collections.abc import Iterator

import pandas as pd

from interp.report.pairs import Bars, Number, Panel
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_MOST = 20
"""Number of edges shown for a pair."""

_EDGE = ["model", "direction", "method", "writer", "reader"]

_NOTE = f"The {_MOST} edges with the largest effects on this pair, in logits. "


def edge_panels(
    measured: ResultTables, prompts: pd.DataFrame, meaning: str
) -> Iterator[tuple[str, Panel]]:
    """The largest edges of each pair, by model, direction and method.

    Args:
        measured: the measured edges.
        prompts: rows of the prompts table, of whole pairs.
        meaning: what an effect is.
    """
    chosen = [("pair_id", "in", prompts["pair_id"].unique().tolist())]
    note = _NOTE + meaning
    for part in measured.parts("edges", filters=chosen):
        for of, own in grouped(part, ["pair_id", *_EDGE[:3]]):
            order = own["effect"].abs().sort_values(ascending=False, kind="stable").index
            rows = own.loc[order[:_MOST]]
            names = rows["writer"] + " → " + rows["reader"]
            groups = {"": list(zip(names, rows["effect"], strict=True))}
            labels = {name: str(of[name]) for name in _EDGE[:3]}
            yield str(of["pair_id"]), Bars("Largest edges", labels, groups, note=note)


def edge_numbers(measured: ResultTables, largest: pd.DataFrame) -> Iterator[Number]:
    """The effect of each of the given edges in each pair.

    Args:
        measured: the measured edges.
        largest: rows with model, direction, method, writer and reader.
    """
    rows = measured.table("edges").merge(largest[_EDGE].drop_duplicates(), on=_EDGE)
    for of, own in grouped(rows, _EDGE):
        values = {
            str(pair): float(effect)
            for pair, effect in zip(own["pair_id"], own["effect"], strict=True)
        }
        yield Number("effect", {name: str(value) for name, value in of.items()}, values)
