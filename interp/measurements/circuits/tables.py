"""How much of a model's answer its circuits preserve, and whether they do so in every phrasing.

f(C) = [mean m(C) - mean m(empty)] / [mean m(full) - mean m(empty)], a ratio of means over pairs
(MIB, Mueller et al. 2025): 1 corresponds to the whole model on the clean prompt, and 0 to the whole
model on the corrupt prompt or, for whole answers, to the measured empty circuit. cmd is the area
under |1 - f| over the share of edges, by the trapezoidal rule, starting at the smallest share; 0 is
best. cpr is the area under f, which is capped at 1 at each share, since a circuit that exaggerates
the answer would otherwise score best.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.statistics.clusters import FEWEST
from interp.statistics.resampling import bootstrap_sums
from interp.statistics.summaries import LEVEL, UPPER, grouped
from interp.tables import NO_GAP

RESAMPLES = 2000
"""Number of bootstrap resamples of the clusters."""

BOUNDS = (0.05, 0.1, 0.2)
"""Bounds on the distance from the whole model; the smallest circuit within each bound is found."""

_HEIGHTS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "cmd": lambda f: np.abs(1 - f),
    "cpr": lambda f: np.minimum(f, 1),
}
"""For each area, the function that computes the height of its curve from f."""

_RANKING = ["method", "choice"]

_ENDS = [(1 - LEVEL) / 2, UPPER]

_ROUNDING = 1e-5
"""An f closer to 0 than this differs from the empty circuit's f only by rounding in float32."""


def circuit_table(
    circuits: pd.DataFrame, pairs: pd.DataFrame, clusters: Mapping[str, object]
) -> pd.DataFrame:
    """One row per model, method, choice and share.

    Columns are edges: number of edges on paths from the input to the logits (mean over draws); f:
    NaN if the metrics of the two prompts differ by less than `NO_GAP` on average; f_low, f_high:
    its 95% percentile interval from a bootstrap over clusters, NaN for fewer than `FEWEST` of them;
    pairs; and clusters.

    Args:
        circuits: rows of the circuits table.
        pairs: rows of the pairs table.
        clusters: the cluster of each pair.
    """
    tables = [pd.DataFrame(columns=["model", *_RANKING, "share", "edges", "f", *_between("f")])]
    for curve in _curves(circuits, pairs, clusters):
        low, high = curve.interval(curve.resampled.mean(1))
        numbers = {"f": curve.f.mean(0), "f_low": low, "f_high": high, **curve.counts}
        shares = {"share": curve.shares, "edges": curve.edges}
        tables.append(pd.DataFrame({**curve.key, **shares, **numbers}))
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)


def circuit_area_table(
    circuits: pd.DataFrame, pairs: pd.DataFrame, clusters: Mapping[str, object]
) -> pd.DataFrame:
    """One row per model, method and choice, in ascending order of cmd within each model.

    cmd, cmd_low, cmd_high: area under |1 - f|; cpr, cpr_low, cpr_high: area under f, capped at 1.
    Areas are averaged over draws, with intervals as in `circuit_table`. Further columns are pairs
    and clusters.
    """
    rows = []
    for curve in _curves(circuits, pairs, clusters):
        row: dict[str, object] = {**curve.key}
        for name, height in _HEIGHTS.items():
            area = curve.area(height(curve.f)).mean(-1)
            low, high = curve.interval(curve.area(height(curve.resampled)).mean(-1))
            row |= {name: float(area), f"{name}_low": float(low), f"{name}_high": float(high)}
        rows.append({**row, **curve.counts})
    columns = ["model", *_RANKING, "cmd", *_between("cmd"), "cpr", *_between("cpr")]
    table = pd.DataFrame(rows, columns=[*columns, "pairs", "clusters"])
    order = table.groupby("model", sort=False)["cmd"].rank(method="first")
    return table.assign(order=order, place=pd.factorize(table["model"])[0]).sort_values(
        ["place", "order"], ignore_index=True
    )[table.columns]


@dataclass(frozen=True)
class _Curve:
    """f as a function of the share of edges, for one ranking."""

    key: Mapping[str, object]
    shares: Float[np.ndarray, " share"]
    edges: Float[np.ndarray, " share"]
    f: Float[np.ndarray, "draw share"]
    resampled: Float[np.ndarray, "resample draw share"]
    counts: Mapping[str, int]

    def area(self, values: Float[np.ndarray, "... share"]) -> np.ndarray:
        """The areas under curves over the share of edges."""
        return np.asarray(np.trapezoid(values, self.shares, axis=-1))

    def interval(self, resampled: np.ndarray) -> np.ndarray:
        """Ends of each statistic's interval, (end, ...), from its resamples."""
        if self.counts["clusters"] < FEWEST:
            return np.full((2, *resampled.shape[1:]), np.nan)
        return np.asarray(np.quantile(resampled, _ENDS, axis=0))


def _curves(
    circuits: pd.DataFrame, pairs: pd.DataFrame, clusters: Mapping[str, object]
) -> Iterator[_Curve]:
    """The curve of each ranking."""
    # Behind prompts of different lengths, whole answers attend to less than the source prompt.
    measured = pairs.get("empty_metric", pairs["source_metric"]).fillna(pairs["source_metric"])
    ends = pairs.assign(empty=measured).set_index(["model", "pair_id"])[["base_metric", "empty"]]
    for (model,), of_model in circuits.groupby(["model"], sort=False):
        for key, rows in grouped(of_model, _RANKING):
            wide = rows.pivot(index="pair_id", columns=["draw", "share"], values="metric")
            wide = wide.sort_index(axis="columns")
            draws = wide.columns.get_level_values("draw").nunique()
            full, empty = ends.loc[[(model, pair) for pair in wide.index]].to_numpy(float).T
            columns = np.column_stack([wide.to_numpy(float) - empty[:, None], full - empty])
            of_pair = pd.factorize(wide.index.map(clusters))[0]
            sums = np.zeros((of_pair.max() + 1, columns.shape[1]))
            np.add.at(sums, of_pair, columns)
            edges = rows.groupby(["draw", "share"])["edges"].first().groupby("share").mean()
            few = abs(float(columns[:, -1].mean())) < NO_GAP
            yield _Curve(
                {"model": model, **key},
                edges.index.to_numpy(float),
                edges.to_numpy(float),
                _ratios(sums.sum(0, keepdims=True), draws, few)[0],
                _ratios(bootstrap_sums(sums, resamples=RESAMPLES), draws, few),
                {"pairs": len(wide), "clusters": len(sums)},
            )


def _ratios(
    sums: Float[np.ndarray, "resample column"], draws: int, few: bool
) -> Float[np.ndarray, "resample draw share"]:
    """Each circuit's f, from sums of differences from the empty circuit; the full model is last."""
    whole = np.full(len(sums), np.nan) if few else sums[:, -1]
    ratios = np.asarray(sums[:, :-1] / whole[:, None]).reshape(len(sums), draws, -1)
    return np.where(np.abs(ratios) < _ROUNDING, 0.0, ratios)


def _between(name: str) -> list[str]:
    return [f"{name}_low", f"{name}_high"]


def split_table(
    circuits: pd.DataFrame,
    pairs: pd.DataFrame,
    clusters: Mapping[str, object],
    values: Mapping[str, str],
    chosen: Collection[str],
) -> pd.DataFrame:
    """Each circuit's distance from the whole model, for each value of the split factor.

    One row per model, method, choice, share and value. chosen: whether the value's effects were
    used to choose the circuits; edges; distance, distance_low, distance_high: |mean m(C) - mean
    m(full)| over the value's pairs, as a share of |mean m(full) - mean m(empty)| over all pairs,
    with a percentile interval over the clusters of the value; pairs; clusters. The
    denominator is taken over all pairs, so that a distance is defined even for a value whose pairs
    do not change the metric m. Random circuits are omitted.

    Args:
        circuits: rows of the circuits table.
        pairs: rows of the pairs table.
        clusters: the cluster of each pair.
        values: the value of each pair.
        chosen: the values from whose effects the circuits were chosen.
    """
    own = circuits[circuits["method"] != "random"]
    joined = own.merge(pairs[["model", "pair_id", "base_metric", "source_metric"]])
    joined["value"] = joined["pair_id"].map(values)
    columns = ["model", *_RANKING, "share", "value", "chosen", "edges", "distance"]
    tables = [pd.DataFrame(columns=[*columns, *_between("distance"), "pairs", "clusters"])]
    for (model,), of_model in joined.groupby(["model"], sort=False):
        ends = of_model.drop_duplicates("pair_id")
        gap = abs(float((ends["base_metric"] - ends["source_metric"]).mean()))
        for value, rows in of_model.groupby("value", sort=True):
            away = rows.assign(away=(rows["metric"] - rows["base_metric"]) / gap)
            wide = away.pivot(index="pair_id", columns=[*_RANKING, "share"], values="away")
            of_pair = pd.factorize(wide.index.map(clusters))[0]
            sums = np.zeros((of_pair.max() + 1, wide.shape[1] + 1))
            np.add.at(sums, of_pair, np.column_stack([wide.to_numpy(float), np.ones(len(wide))]))
            drawn = bootstrap_sums(sums, resamples=RESAMPLES)
            low, high = _folded(drawn[:, :-1] / drawn[:, -1:], len(sums))
            table = wide.columns.to_frame(index=False).assign(
                distance=np.abs(wide.to_numpy(float).mean(0)), distance_low=low, distance_high=high
            )
            edges = rows.groupby([*_RANKING, "share"], sort=False)["edges"].first().reset_index()
            facts = {"model": model, "value": value, "chosen": value in chosen}
            counts = {"pairs": len(wide), "clusters": len(sums)}
            whole = pd.DataFrame({**table.merge(edges), **facts, **counts})
            tables.append(whole[tables[0].columns])
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)


def _folded(resampled: Float[np.ndarray, "resample circuit"], clusters: int) -> np.ndarray:
    """Ends of the intervals for absolute values, from signed resamples."""
    if clusters < FEWEST:
        return np.full((2, resampled.shape[1]), np.nan)
    low, high = np.quantile(resampled, _ENDS, axis=0)
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.stack([nearest, np.maximum(np.abs(low), np.abs(high))])


def survival_table(distances: pd.DataFrame) -> pd.DataFrame:
    """The smallest circuit close enough to the model for every chosen value, tested on the others.

    One row per model, method, choice and bound. share, edges: size of the smallest circuit whose
    distance is at most `bound` for every chosen value (NaN if there is none); largest_chosen,
    largest_tested: the circuit's largest distance among chosen and among tested values; worst: the
    tested value with the largest distance; held: number of tested values within the bound; tested:
    number of tested values.

    Args:
        distances: from `split_table`.
    """
    rows = []
    for key, members in grouped(distances, ["model", *_RANKING]):
        largest = members.groupby(["chosen", "share"])["distance"].max()
        for bound in BOUNDS:
            fits = largest[True][largest[True] <= bound].index if True in largest else []
            row: dict[str, object] = {**key, "bound": bound}
            if len(fits):
                own = members[members["share"] == min(fits)]
                tested = own[~own["chosen"].astype(bool)]
                worst = tested.nlargest(1, "distance")
                row |= {
                    "share": min(fits),
                    "edges": int(own["edges"].iloc[0]),
                    "largest_chosen": largest[True][min(fits)],
                    "largest_tested": tested["distance"].max(),
                    "worst": "".join(worst["value"].astype(str)),
                    "held": int((tested["distance"] <= bound).sum()),
                    "tested": len(tested),
                }
            rows.append(row)
    numbers = ["share", "edges", "largest_chosen", "largest_tested", "worst", "held", "tested"]
    return pd.DataFrame(rows, columns=["model", *_RANKING, "bound", *numbers])
