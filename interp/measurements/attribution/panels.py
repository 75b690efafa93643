"""What the browser of pairs shows about attributions: shaded tokens, shares of segments, ratios."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from interp.choices import TEMPLATE
from interp.measurements.attribution.ratios import column_name
from interp.measurements.attribution.segments import token_shares
from interp.reading.pieces import readable
from interp.report.formatting import ratio_title, segment_label
from interp.report.pairs import (
    Bars,
    Number,
    Panel,
    Shaded,
    Text,
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
    key = ["pair_id", "model", "method"]
    if "token_scores" in measured.names():
        scores, tokens = (measured.table(name, prompts=ids) for name in ("token_scores", "tokens"))
        shares = with_sides(token_shares(scores, tokens), prompts)
        for of, own in grouped(shares, key):
            texts = [
                _text(str(side), rows.sort_values("position"))
                for side, rows in own.groupby("side", sort=False)
            ]
            labels = {name: str(of[name]) for name in key[1:]}
            yield str(of["pair_id"]), Shaded("Shading by tokens", labels, texts, note=_TOKENS)
    rows = with_sides(measured.table("segment_scores", _SCORES, prompts=ids), prompts)
    named = {name: segment_label(name) for name in rows["segment"].unique()}
    for of, own in grouped(rows, key):
        groups: dict[str, list[tuple[str, float]]] = {}
        columns = (own[name].tolist() for name in ("side", "segment", "share"))
        for side, segment, share in zip(*columns, strict=True):
            groups.setdefault(str(side), []).append((named[segment], share))
        labels = {name: str(of[name]) for name in key[1:]}
        yield str(of["pair_id"]), Bars("Shares of segments", labels, groups, note=_SEGMENTS)


def _text(side: str, rows: pd.DataFrame) -> Text:
    labels = ["" if name == TEMPLATE else segment_label(str(name)) for name in rows["segment"]]
    return Text(side, readable(rows["token"].tolist()), rows["share"].tolist(), labels)


def attribution_numbers(measured: ResultTables, ratios: pd.DataFrame | None) -> Iterator[Number]:
    """Each pair's mean share of each segment and, if two are compared, its geometric mean ratio.

    Args:
        measured: the measured attributions.
        ratios: the ratios of compared segments; None if the prompts' system compares none.
    """
    prompts = measured.table("prompts", ["prompt_id", "pair_id"])
    compared = measured.about.ratio
    if ratios is not None and compared is not None:
        title = ratio_title(compared)
        for of, own in grouped(ratios, ["model", "method"]):
            positive = own[own["ratio"] > 0]
            logs = positive.assign(log=np.log(positive["ratio"].astype(float)))
            means = mean_by_pair(logs, prompts, "log")
            values = {pair: float(np.exp(mean)) for pair, mean in means.items()}
            labels = {name: str(value) for name, value in of.items()}
            headline = f"{title} ({column_name(labels['method'])}, geometric mean)"
            yield Number(title, labels, values, headline=headline)
    for of, own in grouped(
        measured.table("segment_scores", _SCORES), ["model", "method", "segment"]
    ):
        labels = {name: str(value) for name, value in of.items()}
        headline = f"share of {segment_label(labels['segment'])} by {labels['method']}"
        yield Number("share", labels, mean_by_pair(own, prompts, "share"), headline=headline)
