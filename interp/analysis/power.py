"""The smallest differences that a set of prompts can show, before any model is run."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import studentized_range

from interp.analysis.contrasts import MODEL, POWER, Contrast
from interp.analysis.intervals import LEVEL, Z


def plan_table(
    pairs: pd.DataFrame,
    contrasts: Sequence[Contrast],
    *,
    cluster: str,
    accuracy: float,
    correlation: float,
) -> pd.DataFrame:
    """One row per contrast: factor, contrast, pairs_a, pairs_b, clusters, detectable.

    detectable is the difference of accuracies that a two-sided test at 5% finds with a power of
    80%. Answers about one cluster at one level have the correlation that is given; at different
    levels none, so that a comparison within clusters can only find smaller differences.

    Args:
        pairs: one row per pair, with the factors and the cluster.
        contrasts: what is to be compared.
        cluster: the column of the clusters within which outcomes are correlated.
        accuracy: what is expected; differences are hardest to find at 0.5.
        correlation: intraclass correlation of the answers of one cluster.
    """
    rows = []
    for contrast in contrasts:
        levels = _levels(pairs, contrast)
        sizes = {name: table.groupby(cluster).size().to_numpy(float) for name, table in levels}
        errors = {
            name: np.sqrt(accuracy * (1 - accuracy) * _worth(n, correlation) / n.sum())
            for name, n in sizes.items()
        }
        together = pd.concat([table for _, table in levels])
        for a, b, factor in _compared(contrast, list(sizes)):
            error = float(np.hypot(errors[a], errors[b]))
            rows.append(
                {
                    "factor": contrast.factor,
                    "contrast": f"{a} - {b}" if factor is None else "best - worst",
                    "pairs_a": int(sizes[a].sum()),
                    "pairs_b": int(sizes[b].sum()),
                    "clusters": together[cluster].nunique(),
                    "detectable": ((factor or Z) + float(ndtri(POWER))) * error,
                }
            )
    return pd.DataFrame(rows)


def _worth(sizes: np.ndarray, correlation: float) -> float:
    """The design effect of clusters of these sizes (Kish, 1965): variance over that of one each."""
    return float(1 + ((sizes**2).sum() / sizes.sum() - 1) * correlation)


def _levels(pairs: pd.DataFrame, contrast: Contrast) -> list[tuple[str, pd.DataFrame]]:
    """The pairs at each level; two models answer all of them."""
    if contrast.factor == MODEL:
        return [("a", pairs), ("b", pairs)]
    groups = [(str(name), rows) for name, rows in pairs.groupby(contrast.factor, sort=False)]
    return [(name, rows) for name, rows in groups if name in (contrast.levels or name)]


def _compared(contrast: Contrast, levels: Sequence[str]) -> Iterator[tuple[str, str, float | None]]:
    """Two levels, and the quantile of the range if they are extremes of several."""
    if len(levels) < 2:
        return
    if contrast.levels is None and contrast.factor != MODEL:
        # The range of k independent means has this quantile, in standard errors of one mean.
        quantile = float(studentized_range.ppf(LEVEL, len(levels), np.inf)) / np.sqrt(2)
        yield levels[0], levels[-1], quantile
    elif len(levels) == 2:
        a, b = contrast.levels or levels
        yield a, b, None
