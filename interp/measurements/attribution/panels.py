"""What the browser of pairs shows about attributions: shaded tokens, shares of segments, ratios."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from interp.choices import TEMPLATE
from interp.measurements.attribution.ratios import column_name
from interp.measurements.attribution.segments import token_shares
from interp.report.formatting import segment_label
from interp.report.pairs import (
    Bars,
    Number,
    Panel,
    Shaded,
    Text,
    by_pair,
    mean_by_pair,
    with_sides,
)
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_TOKENS = "Each token's share of the sizes of all scores in its prompt."

_SEGMENTS = "Each segment's share of the sizes of all scores in its prompt."

_SCORES = ["model", "method", "prompt_id", "segment", "share"]


def attribution_panels(
    measured: ResultTables, prompts: pd.DataFrame
) -> Iterator[tuple[str, Panel]]:
    """Shaded tokens, if they were kept, and the shares of segments, by model and method."""
    ids = prompts["prompt_id"]
    if "token_scores" in measured.names():
        scores, tokens = (measured.table(name, prompts=ids) for name in ("token_scores", "tokens"))
        shares = with_sides(token_shares(scores, tokens), prompts)
        for pair, labels, own in by_pair(shares, ["model", "method"]):
            texts = [
                _text(str(side), rows.sort_values("position"))
                for side, rows in own.groupby("side", sort=False)
            ]
            yield pair, Shaded("Shading by tokens", labels, texts, note=_TOKENS)
    rows = with_sides(measured.table("segment_scores", _SCORES, prompts=ids), prompts)
    named = {name: segment_label(name) for name in rows["segment"].unique()}
    for pair, labels, own in by_pair(rows, ["model", "method"]):
        groups: dict[str, list[tuple[str, float]]] = {}
        columns = (own[name].tolist() for name in ("side", "segment", "share"))
        for side, segment, share in zip(*columns, strict=True):
            groups.setdefault(str(side), []).append((named[segment], share))
        yield pair, Bars("Shares of segments", labels, groups, note=_SEGMENTS)


def _text(side: str, rows: pd.DataFrame) -> Text:
    labels = ["" if name == TEMPLATE else segment_label(str(name)) for name in rows["segment"]]
    return Text(side, rows["token"].tolist(), rows["share"].tolist(), labels)


def ratio_numbers(ratios: pd.DataFrame, prompts: pd.DataFrame, title: str) -> Iterator[Number]:
    """Each pair's geometric mean ratio, by model and method; `title` is what is compared."""
    positive = ratios[ratios["ratio"] > 0]
    logs = positive.assign(log=np.log(positive["ratio"].astype(float)))
    for of, rows in grouped(logs, ["model", "method"]):
        values = {pair: float(np.exp(m)) for pair, m in mean_by_pair(rows, prompts, "log").items()}
        labels = {name: str(value) for name, value in of.items()}
        headline = f"{title} ({column_name(labels['method'])}, geometric mean)"
        yield Number(title, labels, values, headline=headline)
