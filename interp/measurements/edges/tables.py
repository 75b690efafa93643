"""Edge effects averaged over pairs, and comparisons of estimates with exact effects."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from interp.statistics.classical import spearman
from interp.statistics.clusters import FEWEST
from interp.statistics.resampling import bootstrap_sums
from interp.statistics.summaries import LEVEL, UPPER, grouped

RESAMPLES = 2000
"""Number of bootstrap resamples of the clusters."""

_AT_ONCE = 4096
"""Number of edges whose resamples are held in memory at a time: 64 MiB for each array of them."""

_TOP = (10, 50)
"""Numbers of top edges, by estimate and by exact effect, whose overlap is measured."""

_EDGE = ["writer", "reader"]


def edge_table(edges: pd.DataFrame, clusters: Mapping[str, object]) -> pd.DataFrame:
    """One row per model, direction, method and edge, in descending order of |mean effect|.

    Columns are model, direction, method, writer, reader; rank: 1 for the largest; effect,
    effect_low, effect_high: mean over pairs in logits, with its 95% percentile interval from a
    bootstrap over clusters, NaN for fewer than `FEWEST` clusters; same_sign: share of pairs whose
    effect has the sign of the mean; pairs; and clusters.

    Args:
        edges: rows of the edges table.
        clusters: the cluster of each pair.
    """
    tables = [
        pd.DataFrame({**key, **_summarized(rows, clusters)})
        for key, rows in grouped(edges, ["model", "direction", "method"])
    ]
    columns = [
        "model",
        "direction",
        "method",
        *_EDGE,
        "rank",
        "effect",
        "effect_low",
        "effect_high",
    ]
    empty = pd.DataFrame(columns=[*columns, "same_sign", "pairs", "clusters"])
    return pd.concat(tables, ignore_index=True) if tables else empty


def _summarized(rows: pd.DataFrame, clusters: Mapping[str, object]) -> Mapping[str, object]:
    """The columns of `edge_table` for the edges of one model and method."""
    wide = rows.pivot(index="pair_id", columns=_EDGE, values="effect")
    of_pair = pd.factorize(wide.index.map(clusters))[0]
    values = wide.to_numpy()
    sums = np.zeros((of_pair.max() + 1, values.shape[1]))
    np.add.at(sums, of_pair, values)
    low, high = _interval(sums, np.bincount(of_pair))
    effect = values.mean(0)
    order = np.argsort(-np.abs(effect), kind="stable")
    return {
        "writer": wide.columns.get_level_values("writer")[order],
        "reader": wide.columns.get_level_values("reader")[order],
        "rank": np.arange(1, len(order) + 1),
        "effect": effect[order],
        "effect_low": low[order],
        "effect_high": high[order],
        "same_sign": (np.sign(values) == np.sign(effect)).mean(0)[order],
        "pairs": len(wide),
        "clusters": len(sums),
    }


def _interval(
    sums: Float[np.ndarray, "cluster edge"], sizes: Int[np.ndarray, " cluster"]
) -> Float[np.ndarray, "2 edge"]:
    """The ends of each edge's 95% interval; NaN for fewer than `FEWEST` clusters."""
    if len(sums) < FEWEST:
        return np.full((2, sums.shape[1]), np.nan)
    ends = []
    for start in range(0, sums.shape[1], _AT_ONCE):
        own = np.column_stack([sums[:, start : start + _AT_ONCE], sizes])
        drawn = bootstrap_sums(own, resamples=RESAMPLES)
        means = drawn[:, :-1] / drawn[:, -1:]
        ends.append(np.quantile(means, [(1 - LEVEL) / 2, UPPER], axis=0))
    return np.concatenate(ends, axis=1)


def edge_agreement_table(table: pd.DataFrame) -> pd.DataFrame:
    """Estimates of edges compared with exact effects, one row per model, direction and estimate.

    Columns are model, direction, method; rank_correlation: Spearman's correlation between the
    absolute mean effects; recall_10 and recall_50: share of the 10 or 50 largest exact edges that
    are among the 10 or 50 largest estimates; largest_error: the largest error of a mean effect, in
    logits; and edges: the number of edges with an exact effect.

    Args:
        table: from `edge_table`.
    """
    rows = []
    for key, of_model in grouped(table, ["model", "direction"]):
        by_method = of_model.pivot(index=_EDGE, columns="method", values="effect")
        if "exact" in by_method:
            by_method = by_method[by_method["exact"].notna()]
        for method in by_method.columns.drop("exact") if "exact" in by_method else ():
            exact, estimate = by_method["exact"], by_method[method]
            rows.append(
                {
                    **key,
                    "method": method,
                    "rank_correlation": spearman(exact.abs(), estimate.abs(), tested=False).rho,
                    **{f"recall_{top}": _recall(exact, estimate, top) for top in _TOP},
                    "largest_error": float((exact - estimate).abs().max()),
                    "edges": len(by_method),
                }
            )
    recalls = [f"recall_{top}" for top in _TOP]
    numbers = ["rank_correlation", *recalls, "largest_error", "edges"]
    return pd.DataFrame(rows, columns=["model", "direction", "method", *numbers])


def _recall(exact: pd.Series, estimate: pd.Series, top: int) -> float:
    largest = (set(values.abs().nlargest(top).index) for values in (exact, estimate))
    return len(set.intersection(*largest)) / min(top, len(exact))


def edges_as_cells(edges: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Edges as rows of the patches table, for `guarantee_tables`.

    The site is the kind of reader: q, k, v, mlp or logits; a cell is an edge. If only a sample of
    a checked pair's edges was run, the other edges of the pair are omitted.

    Args:
        edges: rows of the edges table, with estimates of every edge and exact effects for checked
            pairs.
        pairs: rows of the pairs table, with `checked`.
    """
    key = ["model", "pair_id", "direction"]
    checked = edges.join(pairs.set_index(key)["checked"], on=key)["checked"].astype(bool)
    exact = edges.loc[edges["method"] == "exact", [*key, *_EDGE]]
    run = edges[[*key, *_EDGE]].merge(exact, how="left", indicator=True)["_merge"] == "both"
    own = edges[~checked.to_numpy() | run.to_numpy()]
    named = own["reader"].str.extract(r"^(?:a(?P<a>\d+)\..*\.(?P<site>[qkv])|m(?P<m>\d+)|logits)$")
    mlp_or_logits = np.where(named["m"].notna(), "mlp", "logits")
    edge = pd.factorize(own["writer"] + " " + own["reader"])[0]
    return own.assign(
        source="counterpart",
        site=named["site"].fillna(pd.Series(mlp_or_logits, index=own.index)),
        layer=named["a"].fillna(named["m"]).astype(float),
        head=np.nan,
        role="",
        position=edge,
    )
