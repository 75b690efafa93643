"""What the browser of pairs shows about attributions: shaded tokens, shares of segments, ratios."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from interp.choices import TEMPLATE
from interp.measurements.attribution.ratios import column_name
from interp.measurements.attribution.segments import token_shares
from interp.report.formatting import segment_label
from interp.report.pairs import Bars, Number, Panel, Shaded, Text, by_pair, mean_by_pair, with_sides
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_TOKENS = "Each token's share of the sizes of all scores in its prompt."

_SEGMENTS = "Each segment's share of the sizes of all scores in its prompt."


def attribution_panels(
    measured: ResultTables, prompts: pd.DataFrame
) -> Iterator[tuple[str, Panel]]:
    """Shaded tokens, if they were kept, and the shares of segments, by model and method."""
    ids = prompts["prompt_id"]
    if "token_scores" in measured.names():
        scores, tokens = (measured.table(name, prompts=ids) for name in ("token_scores", "tokens"))
        shares = token_shares(scores, tokens).sort_values("position", kind="stable")
        labels = shares["segment"].map(segment_label).mask(shares["segment"] == TEMPLATE, "")
        shares = with_sides(shares.assign(label=labels), prompts)
        for pair, of, own in by_pair(shares, ["model", "method"]):
            texts = [
                Text(str(side), *(rows[name].tolist() for name in ("token", "share", "label")))
                for side, rows in own.groupby("side", sort=False)
            ]
            yield pair, Shaded("Shading by tokens", of, texts, note=_TOKENS)
    columns = ["model", "method", "prompt_id", "segment", "share"]
    rows = with_sides(measured.table("segment_scores", columns, prompts=ids), prompts)
    named = {name: segment_label(name) for name in rows["segment"].unique()}
    for pair, of, own in by_pair(rows, ["model", "method"]):
        groups = {
            str(side): list(zip(each["segment"].map(named), each["share"], strict=True))
            for side, each in own.groupby("side", sort=False)
        }
        yield pair, Bars("Shares of segments", of, groups, note=_SEGMENTS)


def ratio_numbers(ratios: pd.DataFrame, prompts: pd.DataFrame, title: str) -> Iterator[Number]:
    """Each pair's geometric mean ratio, by model and method; `title` is what is compared."""
    positive = ratios[ratios["ratio"] > 0]
    logs = positive.assign(log=np.log(positive["ratio"].astype(float)))
    for of, rows in grouped(logs, ["model", "method"]):
        values = {pair: float(np.exp(m)) for pair, m in mean_by_pair(rows, prompts, "log").items()}
        labels = {name: str(value) for name, value in of.items()}
        headline = f"{title} ({column_name(labels['method'])}, geometric mean)"
        yield Number(title, labels, values, headline=headline)
