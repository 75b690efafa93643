"""Means over questions with intervals, questions under one interpretation being one cluster."""

from collections.abc import Sequence

import pandas as pd
from scipy.special import stdtrit

from interp.statistics.summaries import UPPER

CLUSTER = "interpretation"
"""What questions have in common that makes their scores correlated: names and verb phrases."""


def clustered_means(
    rows: pd.DataFrame, value: str, *, by: Sequence[str], cluster: str = CLUSTER
) -> pd.DataFrame:
    """One row for each combination of `by`: mean, low, high, n, and the number of clusters.

    low and high bound the mean with a confidence of 95% by Student's t for the number of clusters,
    with the linearised variance of a ratio of sums (Cochran, 1977, Sampling Techniques, 6.3); NaN
    with one cluster. The last column is named by the clusters: interpretations, or models.

    Args:
        rows: one row per question.
        value: column that is averaged; missing values are left out.
        by: columns whose combinations are averaged separately, in order of appearance.
        cluster: "interpretation", or "model" for the mean over models in general.
    """
    rows = rows.dropna(subset=[value])
    grouped = rows.groupby([*by, cluster], sort=False, observed=True)[value]
    sums = grouped.agg(total="sum", n="size").reset_index()
    cells = sums.groupby(list(by), sort=False, observed=True)
    table = cells.agg(total=("total", "sum"), n=("n", "sum"), clusters=("n", "size"))
    mean = table["total"] / table["n"]
    apart = (sums["total"] - mean.to_numpy()[cells.ngroup()] * sums["n"]) ** 2
    squares = apart.groupby(cells.ngroup()).sum().to_numpy()
    count = table["clusters"].to_numpy(dtype=float)
    variance = pd.Series(count * squares, index=table.index).div((count - 1) * table["n"] ** 2)
    half = stdtrit(count - 1, UPPER) * variance.where(count > 1) ** 0.5
    found = pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half})
    found = found.assign(n=table["n"], **{f"{cluster}s": table["clusters"]})
    return found.reset_index()
