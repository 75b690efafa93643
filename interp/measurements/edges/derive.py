"""Pairs as trials of edges, and comparisons of estimates with exact effects."""

import numpy as np
import pandas as pd

from interp.statistics.classical import spearman
from interp.statistics.summaries import grouped

_TOP = (10, 50)
"""Numbers of top edges, by estimate and by exact effect, whose overlap is measured."""

_EDGE = ["writer", "reader"]


def edge_trials(edges: pd.DataFrame) -> pd.DataFrame:
    """The rows of the edges table with same_sign: whether the pair has the sign of the mean."""
    by = [edges[name] for name in ("model", "direction", "method", *_EDGE)]
    mean = edges["effect"].groupby(by, sort=False, observed=True).transform("mean")
    return edges.assign(same_sign=np.sign(edges["effect"]) == np.sign(mean))


def edge_agreement_table(table: pd.DataFrame) -> pd.DataFrame:
    """Estimates of edges compared with exact effects, one row per model, direction and estimate.

    Columns are model, direction, method; rank_correlation: Spearman's correlation between the
    absolute mean effects; recall_10 and recall_50: share of the 10 or 50 largest exact edges that
    are among the 10 or 50 largest estimates; largest_error: the largest error of a mean effect, in
    logits; and edges: the number of edges with an exact effect.
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

    The site is the kind of reader: q, k, v, mlp or logits; a cell is an edge. If only a sample of a
    checked pair's edges was run, the other edges of the pair are omitted.
    """
    key = ["model", "pair_id", "direction"]
    checked = edges.join(pairs.set_index(key)["checked"], on=key)["checked"].astype(bool)
    exact = edges.loc[edges["method"] == "exact", [*key, *_EDGE]]
    run = edges[[*key, *_EDGE]].merge(exact, how="left", indicator=True)["_merge"] == "both"
    shown = edges[~checked.to_numpy() | run.to_numpy()]
    named = shown["reader"].str.extract(
        r"^(?:a(?P<a>\d+)\..*\.(?P<site>[qkv])|m(?P<m>\d+)|logits)$"
    )
    mlp_or_logits = np.where(named["m"].notna(), "mlp", "logits")
    edge = pd.factorize(shown["writer"] + " " + shown["reader"])[0]
    return shown.assign(
        source="counterpart",
        site=named["site"].fillna(pd.Series(mlp_or_logits, index=shown.index)),
        layer=named["a"].fillna(named["m"]).astype(float),
        head=np.nan,
        role="",
        position=edge,
    )
