"""Conclusions: a verdict on each method for each model, and the lowest value of each method."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from interp.judging.ranking import league_of
from interp.judging.trials import CONTROL
from interp.report.glance import with_interval

ADVISING = ("top_segment", "lds", "morf_lerf")
"""Metrics for advice; the first that passes its check is used."""

TRUST, WEAKER, UNDECIDED, REFUTED = "trust", "weaker", "undecided", "refuted"
UNTESTED = "not tested"
"""The verdict on a method whose value has no interval."""

_KEY = ["method", "score"]


def verdict_table(
    metrics: pd.DataFrame, checks: pd.DataFrame, differences: pd.DataFrame
) -> pd.DataFrame:
    """One row per method and score, in descending order of the metric used for advice.

    Columns are metric, title, league, method, score, value, corrected (only for the best of the
    league: its value, corrected for selection), low, high, chance, prompts, clusters, p (for the
    hypothesis that no method of the league is better), may_be_best (missing if not tested) and
    verdict, which the page explains (`interp.judging.page`) and which holds simultaneously for all
    methods of the model. There are no rows if no metric can be used.
    """
    titles = checks[checks["used"]].set_index("metric")["title"]
    name = next((name for name in ADVISING if name in titles), None)
    if name is None:
        return pd.DataFrame()
    values = metrics[(metrics["metric"] == name) & (metrics["score"] != CONTROL)]
    table = values.assign(title=titles[name], league=values["method"].map(league_of))
    compared = ["metric", *_KEY, "difference", "corrected", "p", "may_be_best"]
    against = differences.reindex(columns=compared).query("metric == @name")
    table = table.merge(against, on=["metric", *_KEY], how="left", validate="one_to_one")
    table["corrected"] = table["corrected"].where(table["difference"] == 0)
    # The only method of a league cannot be worse than another method.
    best = table["may_be_best"].ne(False).fillna(True).astype(bool)
    above = table["low"] > table["chance"]
    untested = table["low"].isna()
    words = {UNTESTED: untested, TRUST: above & best, WEAKER: above, REFUTED: ~best}
    table["verdict"] = np.select([*words.values()], [*words], UNDECIDED)
    table["may_be_best"] = best.astype("boolean").mask(untested)
    table = table.sort_values("value", ascending=False, kind="stable")
    columns = ["value", "corrected", "low", "high", "chance", "prompts", "clusters", "p"]
    columns = ["metric", "title", "league", *_KEY, *columns, "may_be_best", "verdict"]
    return table[columns].reset_index(drop=True)


def at_worst(metrics: pd.DataFrame) -> pd.DataFrame:
    """For each contender, the row with its lowest value over models; the highest of these first.

    They are rows of `metric_table` with their model and above: whether the contender is above
    chance on every model. One without a value on a model on which some method has one is omitted.
    """
    defined = metrics.dropna(subset=["value"]).reset_index(drop=True)
    models = defined.loc[defined["score"] != CONTROL, "model"].unique()
    table = defined[defined["model"].isin(models)]
    contenders = table.assign(above=table["low"] > table["chance"]).groupby(_KEY, sort=False)
    table = table.assign(above=contenders["above"].transform("all"))
    everywhere = contenders["model"].transform("nunique") == len(models)
    lowest = table[everywhere].groupby(_KEY, sort=False)["value"].idxmin()
    return table.loc[lowest].sort_values("value", ascending=False)


def labels(rows: pd.DataFrame) -> Sequence[str]:
    """The contenders' names in tables and figures, such as "attention (mean token)"."""
    return [*rows["method"].where(rows["score"] != "mean", rows["method"] + " (mean token)")]


def with_intervals(rows: pd.DataFrame, value: str = "value") -> list[str]:
    """The rows' values with their intervals, as texts."""
    ends = rows[[value, "low", "high"]].itertuples(index=False)
    return [with_interval(*map(float, row)) for row in ends]
